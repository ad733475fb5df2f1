"""What a policy promises, as code: each property of the papers, searched for a case that breaks it.

A case is a static problem and, for some properties, a change of it: somebody lies, leaves, or a resource grows. A
property looks at what a policy's exact solver gives before and after, and either finds nothing or says in numbers who
lost what. "Violated" is proven by the case; "holds" only means that no case was found.
"""
