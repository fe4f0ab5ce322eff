"""`Settings`: every option of Overspill in one frozen value, and the settings for one tool."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, cast

from msgspec import structs

from overspill.errors import BadRequest
from overspill.settings.agent_keys import AgentKeys
from overspill.settings.keys import (
    AnswerForm,
    ClientRule,
    Count,
    Fallback,
    IntentMode,
    Key,
    Limit,
    LoginSettings,
    ModelLimits,
    Name,
    Override,
    Percent,
    PresetName,
    PriceSettings,
    Programs,
    Provider,
    Recording,
    RedactSettings,
    RefsSettings,
    Repeats,
    Resources,
    Retries,
    RetrievalTool,
    Seconds,
    SizeCap,
    ToolOutputSettings,
    ToolSearch,
    TruncationSettings,
)
from overspill.settings.layers import nest, resolve
from overspill.settings.presets import TOOL_STRATEGIES, merge_rules
from overspill.settings.reading import Layer
from overspill.settings.schema import Values, flatten, visible
from overspill.store.protocols import Retention
from overspill.text.names import own_name

if TYPE_CHECKING:
    from overspill.wording.presets import Wording

DEFAULT_SIZE_CAP = 12_288
DEFAULT_TOKEN_THRESHOLD = 10_000
AUTO: Final = "auto"


@dataclass(frozen=True, init=False, repr=False)
class Settings(AgentKeys):
    """Keyword arguments are keys in either spelling. Sections are mappings: `Settings(toolOutput={"maxChunks": 2})`."""

    preset: Annotated[PresetName, Key("The values to start from. Every other key overrides them.", "anyone")] = "overspill"
    tool_response_max_bytes: Annotated[
        SizeCap | None,
        Key("Outputs of more bytes are stored. 0: no limit in bytes; null: 12288 if `async` is off, otherwise 0.", "anyone"),
    ] = DEFAULT_SIZE_CAP
    async_token_threshold: Annotated[
        Limit | Literal["auto"] | None,
        Key(
            "Outputs of more tokens are stored. auto: 10000, or no limit in tokens if `toolResponseMaxBytes` is above 12288; "
            "null: no limit in tokens.",
            "anyone",
        ),
    ] = AUTO
    async_: Annotated[
        bool, Key("Whether slow tools move to the background. If false, `asyncTokenThreshold` is off too.", "anyone")
    ] = True
    async_timeout_secs: Annotated[Seconds, Key("A call that takes longer keeps running in the background.", "anyone")] = 5.0
    tool_timeout: Annotated[
        Seconds | None, Key("A tool is stopped this many seconds after it started; null: never.", "agent")
    ] = 300.0
    wait_max_secs: Annotated[Seconds, Key("The most seconds that `wait_for_tool_output` waits.", "agent")] = 300.0
    max_running: Annotated[
        Limit, Key("The most tools that run at the same time. Further calls wait for their turn.", "agent")
    ] = 64
    model: Annotated[Name | None, Key("The model whose tokenizer counts tokens; null: o200k.", "agent")] = None
    answer_form: Annotated[AnswerForm, Key("What the model sees in place of a stored output.", "agent")] = "handle"
    preview_tokens: Annotated[
        Count | Literal["auto"],
        Key(
            "The most tokens that describe a stored output below its handle; 0: none; "
            "auto: 400, or no limit in tokens if `previewChars` is set.",
            "anyone",
        ),
    ] = AUTO
    preview_chars: Annotated[Count | None, Key("The same in characters; 0: none; null: no limit in characters.", "anyone")] = None
    intent: Annotated[
        IntentMode,
        Key(
            "Whether the reply to a stored output shows the passages that its caller was looking for. implicit: as the call and "
            "the conversation say; ask: tools of the proxy, agents and integrations also get an argument `looking_for`; off: "
            "never. Agents use `ask` unless you set it.",
            "anyone",
        ),
    ] = "implicit"
    intent_tokens: Annotated[Limit, Key("The most tokens of such passages in one reply.", "anyone")] = 700
    intent_within_secs: Annotated[
        Seconds | None, Key("The most seconds that a reply waits for such passages; null: until a limited search ends.", "agent")
    ] = None
    intent_model: Annotated[
        bool, Key("Whether the model that extracts answers an intent in words. The call then takes as long as it.", "owner")
    ] = False
    repeats: Annotated[
        Repeats,
        Key("An output that was shown before: `stub` names it, `full` shows it, as the proxy does over HTTP.", "anyone"),
    ] = "stub"
    holdout_percent: Annotated[Percent, Key("The share of conversations left as without Overspill, to compare.", "owner")] = 0
    programs: Annotated[
        Programs,
        Key(
            "What the proxy answers where programs of the client's model may get the results of tools. whole: the result as the "
            "server sent it, whatever its size, stored all the same; card: what a model gets; auto: whole for calls that the "
            "table in [code mode](code-mode.md) knows to come from a program.",
            "owner",
        ),
    ] = AUTO
    resources: Annotated[
        Resources, Key("Whether the proxy shortens [large resources](protocol.md#resources); auto: by the client.", "owner")
    ] = AUTO
    tool_search: Annotated[
        ToolSearch,
        Key("Whether models get a [search](tool-search.md) in place of tools; auto: above 10,000 tokens.", "owner"),
    ] = AUTO
    direct_tools: Annotated[Literal["pinned", "destructive"], Key("Tools that stay out of this search.", "owner")] = "pinned"
    answer_max_bytes: Annotated[Limit | None, Key("The most bytes of one retrieval answer; null: no limit.", "agent")] = 12_288
    answer_max_chars: Annotated[Limit | None, Key("The same in characters; null: no limit in characters.", "agent")] = None
    sql_timeout_secs: Annotated[Seconds, Key("The most seconds that one SQL query takes.", "agent")] = 10.0
    program_timeout_secs: Annotated[Seconds, Key("The most seconds that one program of the model takes.", "agent")] = 60.0
    program_tools: Annotated[tuple[Name, ...], Key("Tools that such programs may call: `crm/get_*`, `crm`.", "owner")] = ()
    trust_read_only: Annotated[tuple[Name, ...], Key("Servers whose read-only tools they may call.", "owner")] = ()
    max_inline_blob: Annotated[
        Limit, Key("Blocks that are not text (images, audio) are stored if they have more bytes.", "anyone")
    ] = 1_000_000
    surface: Annotated[
        tuple[RetrievalTool, ...],
        Key(
            "Tools offered to the model, with `get_tool_output` wherever `async` is on, and `run_program` where programs may "
            "call tools. All work when called. `overspill get` is the command, for a model that has a shell.",
            "agent",
        ),
    ] = ("get_tool_output",)
    extraction_model: Annotated[
        Name | None, Key("The model that extracts if `toolOutput.models` names none.", "agent", names_models=True)
    ] = None
    extraction_fallback: Annotated[
        tuple[Fallback, ...], Key("What answers if no model can extract, tried in this order.", "agent")
    ] = ("builtin", "truncate")
    extraction_retries: Annotated[Retries, Key("How often an extraction retries a failed model call.", "agent")] = 2
    jobs: Annotated[Name | None, Key("The URL of the queue that `overspill worker` serves.", "owner", private=True)] = None
    store_dir: Annotated[
        Name | None, Key("Where outputs are stored: a path, `file:///…` or `memory:`; null: the temporary directory.", "owner")
    ] = None
    store: Annotated[
        Name | None, Key("The URL of a store to use instead of `storeDir`, e.g. `s3://bucket/prefix`.", "owner", private=True)
    ] = None
    retention: Annotated[
        Retention, Key("How long outputs stay: until the session closes, until the process ends, or longer (`keep`).", "owner")
    ] = "process"
    record: Annotated[Recording, Key("`replies`: store what the model asked and was shown, word for word.", "owner")] = "figures"
    keep_days: Annotated[Limit, Key("Retention `keep` removes what has not been used for this many days.", "owner")] = 7
    keep_bytes: Annotated[
        Limit, Key("Above this many bytes in a family, `keep` removes what was used longest ago, over a day ago.", "owner")
    ] = 2_147_483_648
    max_run_bytes: Annotated[
        Limit, Key("The most bytes that one run stores. It never stores more than half of the free space.", "agent")
    ] = 10_737_418_240
    tool_output: Annotated[ToolOutputSettings, Key("Storing and extraction.", "anyone")]
    truncation: Annotated[TruncationSettings, Key("How outputs are shortened.", "anyone")]
    servers: Annotated[Mapping[str, Override], Key("Rules by server name.", "anyone")]
    clients: Annotated[Mapping[str, ClientRule], Key("Rules by the name of an MCP client, in any case.", "owner", any_case=True)]
    login: Annotated[LoginSettings, Key("Servers behind a login.", "owner")]
    refs: Annotated[RefsSettings, Key("Handles in the arguments of calls.", "owner")]
    prices: Annotated[PriceSettings, Key("What a model costs, for figures in money.", "owner")]
    redact: Annotated[RedactSettings, Key("Secrets in outputs.", "anyone")]
    providers: Annotated[Mapping[str, Provider], Key("Model servers by name. Use their models as `name/model`.", "owner")]
    model_limits: Annotated[Mapping[str, ModelLimits], Key("Limits of models by `provider/model`.", "agent")]
    off: bool = False
    """Set only by `for_tool`: this tool's outputs pass unchanged."""

    def __init__(self, preset: PresetName = "overspill", **values: Any) -> None:
        resolved = resolve(Settings, [Layer("Settings()", {"preset": preset, **values})])
        for warning in resolved.warnings:
            warnings.warn(warning, stacklevel=2)
        vars(self).update(nest(Settings, resolved.values), off=False)

    @classmethod
    def of(cls, values: Values, off: bool = False) -> "Settings":
        """Make settings from checked, flat values."""
        return cls._holding(nest(Settings, values) | {"off": off})

    @classmethod
    def _holding(cls, held: Mapping[str, Any]) -> "Settings":
        settings = object.__new__(cls)
        vars(settings).update(held)
        return settings

    @property
    def wording(self) -> "Wording":
        """The text that a model reads, which depends on the preset."""
        from overspill.wording.presets import WORDINGS  # noqa: PLC0415  # most commands write no text for a model

        return WORDINGS[self.preset]

    @property
    def background(self) -> bool:
        """Whether a slow tool may keep running in the background."""
        return self.async_

    @cached_property
    def may_use_background(self) -> bool:
        """Whether any tool may keep running in the background."""
        rules = () if self.off else (*self.servers.values(), *self.truncation.overrides.values())
        return self.async_ or any(rule.background for rule in rules)

    @cached_property
    def size_cap(self) -> int:
        """The limit in bytes; 0 means no limit. With `async` off, the token threshold is off too, so the size must be limited."""
        if self.tool_response_max_bytes is None:
            return 0 if self.async_ else DEFAULT_SIZE_CAP
        return self.tool_response_max_bytes

    @cached_property
    def effective_token_threshold(self) -> int | None:
        """The limit in tokens; None means no limit. If you raise the limit in bytes, that much passes without another limit."""
        if self.async_token_threshold == AUTO:
            return None if not self.async_ or self.size_cap > DEFAULT_SIZE_CAP else DEFAULT_TOKEN_THRESHOLD
        return self.async_token_threshold if self.async_ else None

    def untouched(self) -> "Settings":
        """Settings with which all tools behave as without Overspill, except that redaction still applies."""
        return self._with({"off": True, "async_": False, "surface": (), "intent": "off", "resources": "pass"})

    def for_client(self, name: object) -> "Settings":
        """The settings for the MCP client that introduces itself by this name."""
        rule = self.clients.get(name.lower()) if isinstance(name, str) and not self.off else None
        changes = {key: value for key, value in structs.asdict(rule).items() if value is not None} if rule else {}
        return self._with(changes) if changes else self

    def for_tool(self, name: str, server: str = "") -> "Settings":
        """The settings for one tool: the built-in strategy, then its server's override, then its own.

        `name` may start with the server's name, as models call it. An override under that name is the strongest.
        """
        if not isinstance(name, str) or not isinstance(server, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadRequest(f"The names of a tool and its server must be strings, not {name!r} and {server!r}.")
        known = self._tools_with_rules
        # Names without a rule share one entry, so that unknown names cannot make the cache grow.
        full = name.lower()
        own = own_name(name, server).lower() if server else full
        rule = (own if own in known else "", full if full in known else "", server if server in self.servers else "")
        if (found := self._by_rule.get(rule)) is None:
            found = self._by_rule[rule] = self._under(*rule)
        return found

    @cached_property
    def _tools_with_rules(self) -> frozenset[str]:
        return frozenset(TOOL_STRATEGIES) | frozenset(self.truncation.overrides)

    @cached_property
    def _by_rule(self) -> "dict[tuple[str, str, str], Settings]":
        return {}

    def _under(self, own: str, full: str, server: str) -> "Settings":
        changes = merge_rules(own, (self.servers.get(server), *map(self.truncation.overrides.get, (own, full))))
        if not changes:
            return self
        changes |= {"refs": structs.replace(self.refs, enabled=changes["refs"])} if "refs" in changes else {}
        redacting = {name.removeprefix("redact_"): changes.pop(name) for name in tuple(changes) if name.startswith("redact_")}
        changes["redact"] = structs.replace(self.redact, **redacting)
        shortening = {name: changes.pop(name) for name in tuple(changes) if name in self.truncation.__struct_fields__}
        changes["truncation"] = structs.replace(self.truncation, **shortening)
        found = self._with(changes)
        return found.untouched() if self.off else found

    def _with(self, changes: dict[str, Any]) -> "Settings":
        return self._holding({name: getattr(self, name) for name in self.__dataclass_fields__} | changes)

    def __repr__(self) -> str:
        usual = dict(flatten(Settings, Settings(self.preset)))
        changed = [
            f"{'.'.join(path)}={visible(Settings, path, value)!r}"
            for path, value in flatten(Settings, self)
            if path not in usual or usual[path] != value
        ]
        return f"Settings({', '.join([f'preset={self.preset!r}', *changed, *(['off=True'] if self.off else [])])})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The read-only mappings inside cannot be pickled; the flat values can.
        return cast(Any, Settings.of), (dict(flatten(Settings, self)), self.off)
