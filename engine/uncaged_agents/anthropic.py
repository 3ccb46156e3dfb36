"""A model of Anthropic's as an agent, with the tools of this project."""

from __future__ import annotations

from .model import ModelAgent


class AnthropicAgent(ModelAgent):
    wire = "anthropic"
    about = "a Claude model; secret:ANTHROPIC_API_KEY"
