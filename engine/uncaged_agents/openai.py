"""Models behind any OpenAI-compatible endpoint as agents."""

from __future__ import annotations

from .model import ModelAgent


class OpenAIAgent(ModelAgent):
    wire = "openai"
    about = "any OpenAI-compatible endpoint; secret:OPENAI_API_KEY"
