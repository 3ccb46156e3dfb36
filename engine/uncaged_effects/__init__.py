"""The effect kinds that come with the product, one module each; all but `role`, which is in
`uncaged_agents`.
"""
