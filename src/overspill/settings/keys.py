"""The sections of the settings. Each key's name, type, default and meaning are here or in `Settings`, and nowhere else.

A key is a field annotated with a `Key`. Its name in a file is the field's name in camelCase unless the `Key` gives another.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

from overspill.truncate import StrategyName

PresetName: TypeAlias = Literal["overspill", "tool_output", "artifacts", "slow"]
LineFrom: TypeAlias = Literal["start", "end"]
AnswerForm: TypeAlias = Literal["handle", "artifact", "ready"]
RetrievalTool: TypeAlias = Literal["tool_output", "get_tool_output", "wait_for_tool_output", "get_artifact"]
ProviderKind: TypeAlias = Literal["openai", "anthropic", "google", "ollama", "openai-compatible"]
Fallback: TypeAlias = Literal["builtin", "truncate"]
Author: TypeAlias = Literal["anyone", "agent", "owner"]
"""Who wrote a layer: anyone who put a file into the working directory, the author of an agent file, or you. Each may set what
the ones before it may."""

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Limit: TypeAlias = Annotated[int, Meta(ge=1)]
SizeCap: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]
Percent: TypeAlias = Annotated[int, Meta(ge=0, le=50)]
Retries: TypeAlias = Annotated[int, Meta(ge=0, le=10)]
Ratio: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Temperature: TypeAlias = Annotated[float, Meta(ge=0, le=2)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0)]
Name: TypeAlias = Annotated[str, Meta(min_length=1)]


class Key(Struct, frozen=True):
    """What a field's type cannot say about a key of the settings."""

    meaning: str
    set_by: Author
    """Who may set it at least, so that each new key is thought about. `anyone`: whatever a hostile file says, nothing is lost,
    kept elsewhere or longer, sent, paid for or made unreachable. `agent`: it can hurt only the run of the agent that sets it.
    `owner`: it says what runs, where data and keys go, or what happens to outputs of other sessions."""
    spelling: str = ""
    """Its name in files, where that is not the field's name in camelCase."""
    any_case: bool = False
    """The names below it are compared without regard to case."""
    for_agents: bool = False
    """Only `overspill run` uses it."""
    private: bool = False
    """Its values may be secrets and are never shown; names may."""

    def may_be_set_by(self, author: Author) -> bool:
        authors = get_args(Author)
        return authors.index(author) >= authors.index(self.set_by)


class Allow(Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """One more way a stored output may take: from a server or tool into the arguments of another."""

    from_: Name
    to: Name


class ToolOutputSettings(Struct, frozen=True):
    enabled: Annotated[bool, Key("Off: nothing is kept; outputs over the size cap are cut with a marker.", "agent")] = True
    max_chunks: Annotated[
        Limit, Key("Outputs of up to this many chunks are extracted chunk by chunk in mode `auto`.", "agent")
    ] = 1
    overlap_percent: Annotated[Percent, Key("How much of a chunk the next one repeats.", "agent")] = 10
    avg_line_bytes_threshold: Annotated[
        Limit, Key("Longer average lines are extracted chunk by chunk in mode `auto`.", "agent")
    ] = 1_000
    models: Annotated[tuple[Name, ...], Key("Models that extract, tried in this order.", "agent")] = ()
    max_extraction_chunks: Annotated[
        Limit, Key("Chunks one extraction reads at most; asking again goes on from there.", "agent")
    ] = 64
    answer_within_secs: Annotated[
        Seconds | None, Key("After this time an extraction answers with what it has; null: never.", "agent")
    ] = None


class Override(Struct, frozen=True, kw_only=True):
    """What is different for one tool or one server; None leaves the general setting."""

    off: Annotated[bool | None, Key("Outputs pass as they are, whatever their size.", "anyone")] = None
    strategy: Annotated[StrategyName | None, Key("How outputs are shortened.", "anyone")] = None
    inline_limit: Annotated[Limit | None, Key("As `truncation.inlineLimit`.", "anyone")] = None
    artifact_threshold: Annotated[Limit | None, Key("As `truncation.artifactThreshold`.", "anyone")] = None
    max_artifact_size: Annotated[Limit | None, Key("As `truncation.maxArtifactSize`.", "agent")] = None
    head_ratio: Annotated[Ratio | None, Key("As `truncation.headRatio`.", "anyone")] = None
    head_lines: Annotated[Limit | None, Key("As `truncation.headLines`.", "anyone")] = None
    tail_lines: Annotated[Limit | None, Key("As `truncation.tailLines`.", "anyone")] = None
    line_from: Annotated[LineFrom | None, Key("As `truncation.lineFrom`.", "anyone")] = None
    depth: Annotated[Limit | None, Key("As `truncation.depth`.", "anyone")] = None
    first_elements: Annotated[Count | None, Key("As `truncation.firstElements`.", "anyone")] = None
    last_elements: Annotated[Count | None, Key("As `truncation.lastElements`.", "anyone")] = None
    max_keys: Annotated[Limit | None, Key("As `truncation.maxKeys`.", "anyone")] = None
    tool_response_max_bytes: Annotated[SizeCap | None, Key("As `toolResponseMaxBytes`.", "anyone")] = None
    async_token_threshold: Annotated[Limit | None, Key("As `asyncTokenThreshold`.", "anyone")] = None
    async_timeout_secs: Annotated[Seconds | None, Key("As `asyncTimeoutSecs`.", "anyone")] = None
    tool_timeout: Annotated[Seconds | None, Key("As `toolTimeout`.", "agent")] = None
    background: Annotated[bool | None, Key("As `async`.", "anyone", spelling="async")] = None
    refs: Annotated[bool | None, Key("As `refs.enabled`.", "owner")] = None


class Provider(Struct, frozen=True, kw_only=True):
    """A server of models. A file never contains its API key, only where to find it."""

    kind: Annotated[ProviderKind | None, Key("How to speak to it.", "owner")] = None
    base_url: Annotated[Name | None, Key("Its address, such as `http://127.0.0.1:8080/v1`.", "owner")] = None
    api_key_env: Annotated[Name | None, Key("The environment variable that holds its key.", "owner")] = None
    timeout: Annotated[Seconds | None, Key("Seconds that one request may take.", "owner")] = None


class ModelLimits(Struct, frozen=True, kw_only=True):
    """What a model can take, where that is not known or a server allows less."""

    context_window: Annotated[Limit | None, Key("Tokens it reads and writes at once at most.", "agent")] = None
    max_output_tokens: Annotated[Limit | None, Key("Tokens it writes at once at most.", "agent")] = None


class TruncationSettings(Struct, frozen=True):
    inline_limit: Annotated[
        Limit | None, Key("Outputs of more characters are kept; null: characters do not matter.", "anyone")
    ] = None
    artifact_threshold: Annotated[
        Limit, Key("Above this many characters the artifact form shows a reference only.", "anyone")
    ] = 50_000
    max_artifact_size: Annotated[Limit | None, Key("Bytes kept of one output at most; null: no limit.", "agent")] = 1_073_741_824
    default_strategy: Annotated[
        StrategyName, Key("How outputs of tools without a rule of their own are shortened.", "anyone")
    ] = "head_tail"
    head_ratio: Annotated[Ratio, Key("The head's share of what `head_tail` keeps.", "anyone")] = 0.6
    head_lines: Annotated[Limit, Key("Lines that `head` keeps at most.", "anyone")] = 300
    tail_lines: Annotated[Limit, Key("Lines that `tail` keeps at most.", "anyone")] = 200
    line_from: Annotated[LineFrom, Key("Which end of the output `line` keeps.", "anyone")] = "start"
    depth: Annotated[Limit, Key("How deep `element` looks into nested values.", "anyone")] = 3
    first_elements: Annotated[Count, Key("Elements that `element` keeps from the front of a list.", "anyone")] = 5
    last_elements: Annotated[Count, Key("Elements that `element` keeps from the end of a list.", "anyone")] = 5
    max_keys: Annotated[Limit, Key("Keys that `element` keeps of one object at most.", "anyone")] = 50
    overrides: Annotated[Mapping[str, Override], Key("Rules by tool name, in any case.", "anyone", any_case=True)] = (
        MappingProxyType({})
    )


class RefsSettings(Struct, frozen=True):
    enabled: Annotated[bool, Key("Whether `{{output:HANDLE}}` in a call's arguments becomes the stored content.", "owner")] = True
    allow: Annotated[tuple[Allow, ...], Key("Ways content may take beyond the tools of one server or program.", "owner")] = ()
    max_ref_bytes: Annotated[Limit, Key("Bytes that the references of one call may put into it at most, together.", "owner")] = (
        1_000_000
    )
