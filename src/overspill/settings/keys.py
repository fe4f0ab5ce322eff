"""The sections of the settings. Each key's name, type, default and meaning are here or in `Settings`, and nowhere else.

A key is a field annotated with a `Key`. Its name in a file is the field's name in camelCase unless the `Key` gives another.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta, Struct

from overspill.truncate import StrategyName

PresetName: TypeAlias = Literal["overspill", "tool_output", "artifacts", "slow"]
LineFrom: TypeAlias = Literal["start", "end"]
Repeats: TypeAlias = Literal["stub", "full"]
AnswerForm: TypeAlias = Literal["handle", "artifact", "ready"]
Recording: TypeAlias = Literal["figures", "replies"]
IntentMode: TypeAlias = Literal["implicit", "ask", "off"]
RetrievalTool: TypeAlias = Literal[
    "tool_output", "get_tool_output", "wait_for_tool_output", "get_artifact", "run_program", "overspill get"
]
Programs: TypeAlias = Literal["auto", "whole", "card"]
Resources: TypeAlias = Literal["auto", "gate", "pass"]
ToolSearch: TypeAlias = Literal["auto", "on", "off"]
ProviderKind: TypeAlias = Literal["openai", "anthropic", "google", "ollama", "openai-compatible"]
Fallback: TypeAlias = Literal["builtin", "truncate"]
Redacting: TypeAlias = Literal["off", "warn", "on"]
Author: TypeAlias = Literal["anyone", "agent", "owner"]
"""Who wrote a layer: anyone with a file in the working directory, an agent file's author, or you. Each may set more."""

DEFAULT_STRATEGY: StrategyName = "head_tail"

Count: TypeAlias = Annotated[int, Meta(ge=0)]
Limit: TypeAlias = Annotated[int, Meta(ge=1)]
SizeCap: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000)]
Percent: TypeAlias = Annotated[int, Meta(ge=0, le=50)]
Retries: TypeAlias = Annotated[int, Meta(ge=0, le=10)]
Ratio: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Temperature: TypeAlias = Annotated[float, Meta(ge=0, le=2)]
Price: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0)]
Name: TypeAlias = Annotated[str, Meta(min_length=1)]


class Key(Struct, frozen=True):
    """The properties of a setting that its type does not show."""

    meaning: str
    set_by: Author
    """The least trusted author who may set it. Required, so that every new key gets a decision. `anyone`: even if a hostile file
    sets it, nothing is lost, stored elsewhere or longer, sent, paid for or made unreachable. `agent`: it can harm only
    the run of the agent that sets it. `owner`: it decides what runs, where data and keys go, or what happens to outputs of other
    sessions."""
    spelling: str = ""
    """Its name in files, if that is not the field's name in camelCase."""
    any_case: bool = False
    """The case of the names below it does not matter."""
    for_agents: bool = False
    """Only `overspill run` uses it."""
    private: bool = False
    """Its values may be secrets and are never shown. Names, and addresses without their password, may be shown."""
    names_models: bool = False
    """Each value is a target, `provider/model`."""
    holds_patterns: bool = False
    """Each value is a regular expression in RE2's syntax."""
    anyone_may_set: str = ""
    """The only value that anyone may set, because it is the strictest."""

    def may_be_set_by(self, author: Author, value: object = None) -> bool:
        authors = get_args(Author)
        is_strictest = bool(self.anyone_may_set) and value == self.anyone_may_set
        return is_strictest or authors.index(author) >= authors.index(self.set_by)


class Allow(Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Lets stored outputs of one server or tool go into the arguments of another."""

    from_: Name
    to: Name


class ToolOutputSettings(Struct, frozen=True):
    enabled: Annotated[
        bool, Key("Whether outputs are stored. If false, outputs over the size cap are cut with a marker.", "agent")
    ] = True
    max_chunks: Annotated[
        Limit, Key("In mode `auto`, outputs of up to this many chunks are extracted chunk by chunk.", "agent")
    ] = 1
    overlap_percent: Annotated[Percent, Key("What percentage of a chunk the next one repeats.", "agent")] = 10
    avg_line_bytes_threshold: Annotated[
        Limit, Key("In mode `auto`, outputs with longer lines on average are extracted chunk by chunk.", "agent")
    ] = 1_000
    models: Annotated[tuple[Name, ...], Key("Models that extract, tried in this order.", "agent", names_models=True)] = ()
    max_extraction_chunks: Annotated[
        Limit, Key("The most chunks that one extraction reads. Asking again continues from there.", "agent")
    ] = 64
    answer_within_secs: Annotated[
        Seconds | None, Key("After this many seconds, an extraction answers with what it has; null: no limit.", "agent")
    ] = None


class Override(Struct, frozen=True, kw_only=True):
    """Settings for one tool or one server. None keeps the general setting."""

    off: Annotated[bool | None, Key("Outputs pass unchanged, whatever their size.", "anyone")] = None
    strategy: Annotated[StrategyName | None, Key("How outputs are shortened.", "anyone")] = None
    inline_limit: Annotated[Limit | None, Key("Same as `truncation.inlineLimit`.", "anyone")] = None
    artifact_threshold: Annotated[Limit | None, Key("Same as `truncation.artifactThreshold`.", "anyone")] = None
    max_artifact_size: Annotated[Limit | None, Key("Same as `truncation.maxArtifactSize`.", "agent")] = None
    head_ratio: Annotated[Ratio | None, Key("Same as `truncation.headRatio`.", "anyone")] = None
    head_lines: Annotated[Limit | None, Key("Same as `truncation.headLines`.", "anyone")] = None
    tail_lines: Annotated[Limit | None, Key("Same as `truncation.tailLines`.", "anyone")] = None
    line_from: Annotated[LineFrom | None, Key("Same as `truncation.lineFrom`.", "anyone")] = None
    depth: Annotated[Limit | None, Key("Same as `truncation.depth`.", "anyone")] = None
    first_elements: Annotated[Count | None, Key("Same as `truncation.firstElements`.", "anyone")] = None
    last_elements: Annotated[Count | None, Key("Same as `truncation.lastElements`.", "anyone")] = None
    max_keys: Annotated[Limit | None, Key("Same as `truncation.maxKeys`.", "anyone")] = None
    tool_response_max_bytes: Annotated[SizeCap | None, Key("Same as `toolResponseMaxBytes`.", "anyone")] = None
    async_token_threshold: Annotated[Limit | None, Key("Same as `asyncTokenThreshold`.", "anyone")] = None
    async_timeout_secs: Annotated[Seconds | None, Key("Same as `asyncTimeoutSecs`.", "anyone")] = None
    tool_timeout: Annotated[Seconds | None, Key("Same as `toolTimeout`.", "agent")] = None
    background: Annotated[bool | None, Key("Same as `async`.", "anyone", spelling="async")] = None
    intent: Annotated[IntentMode | None, Key("Same as `intent`.", "anyone")] = None
    programs: Annotated[Programs | None, Key("Same as `programs`.", "owner")] = None
    tool_search: Annotated[ToolSearch | None, Key("Same as `toolSearch`; off: offered directly.", "owner")] = None
    refs: Annotated[bool | None, Key("Same as `refs.enabled`.", "owner")] = None
    redact_shown: Annotated[Redacting | None, Key("Same as `redact.shown`.", "owner", anyone_may_set="on")] = None
    redact_sent: Annotated[Redacting | None, Key("Same as `redact.sent`.", "owner", anyone_may_set="on")] = None
    redact_stored: Annotated[Redacting | None, Key("Same as `redact.stored`.", "owner")] = None


class ClientRule(Struct, frozen=True, kw_only=True):
    """Settings for one MCP client. A rule for a server or a tool is stronger."""

    programs: Annotated[Programs | None, Key("Same as `programs`.", "owner")] = None
    resources: Annotated[Resources | None, Key("Same as `resources`.", "owner")] = None
    tool_search: Annotated[ToolSearch | None, Key("Same as `toolSearch`.", "owner")] = None


class Provider(Struct, frozen=True, kw_only=True):
    """A model server. A file never contains its API key, only where to find it."""

    kind: Annotated[ProviderKind | None, Key("Which API it has.", "owner")] = None
    base_url: Annotated[Name | None, Key("Its address, such as `http://127.0.0.1:8080/v1`.", "owner")] = None
    api_key_env: Annotated[Name | None, Key("The environment variable that holds its key.", "owner")] = None
    timeout: Annotated[Seconds | None, Key("Seconds that one request may take.", "owner")] = None


class ModelLimits(Struct, frozen=True, kw_only=True):
    """The limits of a model, if they are not known or a server allows less."""

    context_window: Annotated[Limit | None, Key("The most tokens it reads and writes in one request.", "agent")] = None
    max_output_tokens: Annotated[Limit | None, Key("The most tokens it writes in one request.", "agent")] = None


class LoginClient(Struct, frozen=True, kw_only=True):
    """A client that is registered at an authorization server. A file never contains its secret, only where to find it."""

    client_id: Annotated[Name, Key("Its id there.", "owner")] = ""
    issuer: Annotated[Name, Key("The only authorization server that gets its secret.", "owner")] = ""
    client_secret_env: Annotated[Name | None, Key("The environment variable that holds its secret.", "owner")] = None
    private_key_env: Annotated[Name | None, Key("Or the one that holds its private key, in PEM.", "owner")] = None
    signing_algorithm: Annotated[Name, Key("What its key signs with.", "owner")] = "RS256"
    scope: Annotated[Name | None, Key("The scopes to ask for, with spaces between them.", "owner")] = None


class LoginSettings(Struct, frozen=True):
    client_metadata_url: Annotated[
        Name | None, Key("Where a client metadata document is hosted, to use instead of registering.", "owner")
    ] = None
    clients: Annotated[
        Mapping[str, LoginClient], Key("Clients that log in without a person, by the URL of the MCP server.", "owner")
    ] = MappingProxyType({})


class TruncationSettings(Struct, frozen=True):
    inline_limit: Annotated[
        Limit | None, Key("Outputs of more characters are stored; null: no limit in characters.", "anyone")
    ] = None
    artifact_threshold: Annotated[
        Limit, Key("Above this many characters, the answer form `artifact` shows only a reference.", "anyone")
    ] = 50_000
    max_artifact_size: Annotated[Limit | None, Key("The most bytes stored of one output; null: no limit.", "agent")] = (
        1_073_741_824
    )
    default_strategy: Annotated[StrategyName, Key("How outputs of tools without their own rule are shortened.", "anyone")] = (
        DEFAULT_STRATEGY
    )
    head_ratio: Annotated[Ratio, Key("The head's share of what `head_tail` keeps.", "anyone")] = 0.6
    head_lines: Annotated[Limit | None, Key("The most lines that `head` keeps; null: as many as fit.", "anyone")] = None
    tail_lines: Annotated[Limit | None, Key("The most lines that `tail` keeps; null: as many as fit.", "anyone")] = None
    line_from: Annotated[LineFrom, Key("Which end of the output `line` keeps.", "anyone")] = "start"
    depth: Annotated[Limit | None, Key("How deep `element` looks into nested values; null: as deep as fits.", "anyone")] = None
    first_elements: Annotated[
        Count | None, Key("Elements that `element` keeps from the front of a list; null: as many as fit.", "anyone")
    ] = None
    last_elements: Annotated[
        Count | None, Key("Elements that `element` keeps from the end of a list; null: as many as fit.", "anyone")
    ] = None
    max_keys: Annotated[
        Limit | None, Key("The most keys that `element` keeps of one object; null: as many as fit.", "anyone")
    ] = None
    overrides: Annotated[Mapping[str, Override], Key("Rules by tool name, in any case.", "anyone", any_case=True)] = (
        MappingProxyType({})
    )


class PriceSettings(Struct, frozen=True):
    """In US dollars for a million tokens. The defaults are the list prices of Claude Sonnet 4.5 in October 2025."""

    cache_write: Annotated[Price, Key("Tokens that a prompt has for the first time.", "owner")] = 3.75
    cache_read: Annotated[Price, Key("Tokens that the provider's cache has, or all others without one.", "owner")] = 0.3
    output: Annotated[Price, Key("Tokens that the model writes.", "owner")] = 15.0
    prompt_tokens: Annotated[Count, Key("Tokens of your client's own prompt and tools, read in each request.", "owner")] = 7_500


class RefsSettings(Struct, frozen=True):
    enabled: Annotated[bool, Key("Whether `{{output:HANDLE}}` in a call's arguments becomes the stored content.", "owner")] = True
    allow: Annotated[
        tuple[Allow, ...], Key("Where stored content may go besides the tools of the server or program it came from.", "owner")
    ] = ()
    max_ref_bytes: Annotated[Limit, Key("The most bytes that all references of one call may put into it.", "owner")] = 1_000_000


class RedactSettings(Struct, frozen=True):
    """Each place is `off`, `warn`, which counts what looks like a secret in replies to stored outputs, or `on`."""

    shown: Annotated[
        Redacting,
        Key("Whether secrets are hidden from the model, also from the one that extracts.", "owner", anyone_may_set="on"),
    ] = "off"
    sent: Annotated[Redacting, Key("Whether secrets are hidden from the model that extracts.", "owner", anyone_may_set="on")] = (
        "off"
    )
    stored: Annotated[Redacting, Key("Whether secrets are replaced before an output is stored; they are then lost.", "owner")] = (
        "off"
    )
    fill: Annotated[
        tuple[Name, ...],
        Key(
            "Tools, or `server/tool`, in whose arguments `{{secret:NAME}}` becomes the value of the mark with that name.", "owner"
        ),
    ] = ()
    patterns: Annotated[
        Mapping[str, Name] | None,
        Key("More secrets: regular expressions in RE2's syntax, by what to call them.", "owner", holds_patterns=True),
    ] = None
