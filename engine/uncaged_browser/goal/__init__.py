"""Web goals: browser operations as tools of an agent."""
