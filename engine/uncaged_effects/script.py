"""The effect `script`: a script of the operating system in a sandbox that has exactly what the
policy names.

``{"script": {"language": "bash" | "python" | "powershell", "body": text, "arguments": […]?,
"parameters": {…}?, "timeout_s": number?, "repeat": true?}}`` answers ``{"success", "stdout",
"stderr", "exitCode", "durationMs", "truncated", "timedOut"}``, and ``refused``, a list of
sentences, if something of this machine was hidden from it. The script has no success then, unless
the policy tolerates it. Arguments, and parameters as variables ``PARAM_NAME``, are passed beside
the text, never inside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.errors import EnvironmentLacks, RefusedError, SandboxUnavailable, os_problem
from uncaged_bundles.limits import ScriptLimits
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Failure, Outcome
from uncaged_engine.door.past import PastEffect
from uncaged_engine.services.sandbox import Refused

from .scripting.checks import check_secrets, check_text
from .scripting.refusals import undeclared_command
from .scripting.run import ScriptRun, is_below_directory
from .scripting.spec import ScriptBody, spec_of

ANSWER = {
    "type": "object",
    "required": ["success", "stdout", "stderr", "exitCode", "durationMs", "truncated", "timedOut"],
    "properties": {
        "success": {"type": "boolean"},
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
    },
}
"""JSON Schema of an outcome."""


class ScriptHandler(Handler):
    kind = "script"
    answers: Mapping[str, object] = ANSWER
    limits = ScriptLimits
    decided_limits = frozenset({"modules", "secrets"})

    def rule(self, body: object, bundle: Bundle) -> Rule:
        """Return ``repeat`` for a script without write paths and network, or with ``repeat`` in its
        body.
        """
        limits = bundle.descriptor.policy.limits.get("script", {})
        declared_safe = isinstance(body, Mapping) and body.get("repeat") is True
        harmless = not (limits.get("write") or limits.get("network"))
        return "repeat" if declared_safe or harmless else "ask"

    def past_refusal(self, past: PastEffect) -> str | None:
        options = read_body("script", ScriptBody, past.body)
        if isinstance(options, Failure):
            return None
        limits = ScriptLimits.of(past.limits)
        try:
            spec = spec_of(options, limits)
            check_text(spec.language, spec.body, limits)
            check_secrets(spec.parameters, limits)
        except ValueError:
            return None  # it was not run either
        except Refused as exc:
            return f"script: {exc}"
        # no run needs its parser
        from uncaged_bundles.builders.inference.inference import infer_commands

        # the sandbox refuses a command when it is started; those of the text are known before
        granted = ScriptLimits.of(past.former_limits).executables
        gone = [name for name in granted if name not in limits.executables]
        started = set(infer_commands(spec.language, spec.body)) if gone else ()
        lost = next((name for name in gone if name in started), None)
        return None if lost is None else f"script: {undeclared_command(lost, limits)}"

    def is_harmless(self, body: object, context: EffectContext) -> bool:
        """Return whether the script has no network and writes only below the context's directory,
        whatever its body says of a repetition.
        """
        del body
        limits = ScriptLimits.of(context.bundle.descriptor.policy.limits.get("script", {}))
        if limits.network:
            return False
        try:
            return all(is_below_directory(text, context) for text in limits.write)
        except Refused:
            return True  # it is refused before it starts

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("script", ScriptBody, body)
        if isinstance(options, Failure):
            return options
        limits = ScriptLimits.of(context.bundle.descriptor.policy.limits.get("script", {}))
        run: ScriptRun | None = None
        try:
            spec = spec_of(options, limits)
            check_text(spec.language, spec.body, limits)
            run = ScriptRun(spec, limits, context)
            return run.perform()
        except ValueError as exc:
            return Failure.of("effect", f"script: {exc}")
        except (Refused, RefusedError) as exc:
            return Failure.of("policy", f"script: {exc}")
        except SandboxUnavailable as exc:
            raise EnvironmentLacks(str(exc), begun=run is not None and run.has_started) from exc
        except EnvironmentLacks as exc:
            # programs and secrets are looked for before the script starts
            exc.begun = run is not None and run.has_started
            raise
        except OSError as exc:
            if run is not None and run.has_started:
                raise
            # the error of a write has no path
            why = os_problem(exc, context.store.work if run is None else run.private)
            raise EnvironmentLacks(
                f"the script was not started: {why}", remedy="correct that", begun=False
            ) from exc
