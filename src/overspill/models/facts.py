"""How much a model can read and write: as configured, as known for its family, or a cautious guess."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from overspill.settings.keys import ModelLimits
from overspill.text.regex import Pattern, regex


class ModelFacts(Struct, frozen=True):
    """The limits of a model. 0 means that a limit is not configured, so the family's figure applies."""

    context_window: int = 0
    max_output_tokens: int = 0


UNKNOWN_FACTS = ModelFacts(32_768, 4_096)

_FAMILIES: tuple[tuple[Pattern[str], ModelFacts], ...] = (
    # The first pattern found in `provider/model` decides.
    # Ollama silently cuts a prompt that is longer than its own window, which is small unless you raise it.
    (regex(r"^ollama/"), ModelFacts(4_096, 1_024)),
    (regex(r"gpt-oss"), ModelFacts(131_072, 32_768)),
    (regex(r"gpt-[5-9]"), ModelFacts(400_000, 128_000)),
    (regex(r"gpt-4\.1"), ModelFacts(1_047_576, 32_768)),
    (regex(r"gpt-4o|chatgpt"), ModelFacts(128_000, 16_384)),
    (regex(r"gpt-4-turbo"), ModelFacts(128_000, 4_096)),
    (regex(r"gpt-4"), ModelFacts(8_192, 4_096)),
    (regex(r"gpt-3\.5"), ModelFacts(16_385, 4_096)),
    (regex(r"(^|/)o[134](-|$)"), ModelFacts(200_000, 100_000)),
    (regex(r"claude-3-[57]|claude-3\.[57]"), ModelFacts(200_000, 8_192)),
    (regex(r"claude-3"), ModelFacts(200_000, 4_096)),
    (regex(r"claude"), ModelFacts(200_000, 32_000)),
    (regex(r"gemini-(1|2\.0)"), ModelFacts(1_048_576, 8_192)),
    (regex(r"gemini"), ModelFacts(1_048_576, 65_536)),
    (regex(r"gemma-?[34]"), ModelFacts(131_072, 8_192)),
    (regex(r"llama-?4|llama-?3\.[1-3]"), ModelFacts(131_072, 4_096)),
    (regex(r"llama-?3"), ModelFacts(8_192, 4_096)),
    (regex(r"qwen-?3"), ModelFacts(131_072, 8_192)),
    (regex(r"deepseek"), ModelFacts(65_536, 8_192)),
    (regex(r"mistral-(large|medium|small)|ministral|codestral|devstral"), ModelFacts(131_072, 8_192)),
    (regex(r"grok"), ModelFacts(131_072, 16_384)),
)

_LARGE = regex(
    r"gpt-(4o|4\.|4-|4$|[5-9]|oss-120)|chatgpt|(^|/)o[134](-|$)|claude|gemini|deepseek-(chat|reasoner|v)|grok|"
    r"mistral-(large|medium)|llama-?4|qwen-?3-max|kimi|glm-?[4-9]"
)
_SMALL = regex(r"nano|flash-lite|tiny")
_PARAMETERS = regex(r"(?<![\w.])(?:\d+x)?(\d+(?:\.\d+)?)b(?![a-z])")
_MIN_LARGE_BILLIONS = 30
_MAX_NAME_CHARS = 200


def is_large(target: str) -> bool:
    """Whether a model is known to read long texts well: by its family, or by the number of parameters in its name."""
    name = target.lower()
    if _SMALL.search(name):
        return False
    said = [float(found[1]) for found in _PARAMETERS.finditer(name[:_MAX_NAME_CHARS])]
    return max(said) >= _MIN_LARGE_BILLIONS if said else _LARGE.search(name) is not None


def find_facts(target: str, configured: Mapping[str, ModelFacts | ModelLimits]) -> ModelFacts:
    """The limits of a model. A figure configured for exactly this target, as in `modelLimits`, wins over its family's."""
    family = next((facts for pattern, facts in _FAMILIES if pattern.search(target.lower())), UNKNOWN_FACTS)
    own = configured.get(target, family)
    window = own.context_window or family.context_window
    # If only the window is configured, the default output allowance must leave most of it.
    output = own.max_output_tokens or min(family.max_output_tokens, window // 4)
    return ModelFacts(window, output)
