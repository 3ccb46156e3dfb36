"""A model behind any OpenAI-compatible endpoint as an agent, with the tools of this project."""

from __future__ import annotations

from .model import ModelAgent


class OpenAIAgent(ModelAgent):
    wire = "openai"
    about = "any OpenAI-compatible endpoint; secret:OPENAI_API_KEY"
