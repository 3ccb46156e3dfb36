"""Models of Anthropic as agents."""

from __future__ import annotations

from .model import ModelAgent


class AnthropicAgent(ModelAgent):
    wire = "anthropic"
    about = "a Claude model; secret:ANTHROPIC_API_KEY"
