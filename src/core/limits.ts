/** Every bound of the program, with its unit in its name. What users may change is in Limits. */

import type { BackoffPlan } from "./backoff.ts";

/** Bounds of one agent that users may set. */
export interface Limits {
  maxSteps: number;
  maxTokens: number;
  /** USD; null: no bound. */
  maxCost: number | null;
  maxCalls: number;
  maxCallsPerTurn: number;
  deadlineMs: number;
  idleLimit: number;
  failLimit: number;
  repeatCap: number;
  keepVerbatim: number;
  /** Share of the context window, in (0, 1]. */
  compactAt: number;
  observationBytesMax: number;
  maxDepth: number;
  maxChildren: number;
  maxSubagents: number;
  treeTokensMax: number;
  memoryBytesMax: number;
  progressTimeoutMs: number;
}

/** What holds where nothing else is said; `agentd run --help` names each. */
export const DEFAULT_LIMITS: Readonly<Limits> = {
  maxSteps: 40,
  maxTokens: 1_000_000,
  maxCost: null,
  maxCalls: 400,
  maxCallsPerTurn: 16,
  deadlineMs: 600_000,
  idleLimit: 3,
  failLimit: 8,
  repeatCap: 3,
  keepVerbatim: 5,
  compactAt: 0.75,
  observationBytesMax: 16 * 1024,
  maxDepth: 4,
  maxChildren: 8,
  maxSubagents: 64,
  treeTokensMax: 4_000_000,
  memoryBytesMax: 1024 ** 3,
  progressTimeoutMs: 180_000,
};

/** Bytes for stderr that its reader has not taken; what comes on top is lost. */
export const STDERR_QUEUE_BYTES_MAX = 1024 * 1024;
/** Bytes of a daemon's results that the reader of its stdout has not taken. */
export const OUTPUT_QUEUE_BYTES_MAX = 64 * 1024 * 1024;
/** How long the end of a daemon waits for the reader of its stdout. */
export const OUTPUT_SETTLE_MS = 5_000;
/** How long the end of a process waits for the reader of its stderr. */
export const STDERR_SETTLE_MS = 500;

/** Tokens of one model call that are believed; what an endpoint reports beyond them is estimated. */
export const REPLY_TOKENS_MAX = 1_000_000_000;

/** Transport retries of models and of calls without effect. */
export const TRANSPORT_BACKOFF: BackoffPlan = { baseMs: 100, capMs: 5_000, attemptsMax: 3 };
export const RETRY_AFTER_MS_MAX = 60_000;

/** Objects and arrays inside each other, in any JSON of others. */
export const JSON_LEVELS_MAX = 256;

/** One frame of the control channel, either direction. */
export const FRAME_BYTES_MAX = 8 * 1024 * 1024;
/** One line of a stdio tool server. */
export const TOOL_LINE_BYTES_MAX = 16 * 1024 * 1024;
/** One tool result as it is held and kept; beyond it the call is answered with an error. */
export const TOOL_RESULT_BYTES_MAX = 16 * 1024 * 1024;
/** What one turn's observations show of themselves, together. */
export const TURN_OBSERVATION_BYTES_MAX = 64 * 1024;
/** Images and audio of one turn's results as they are carried to the model, in base64. */
export const TURN_MEDIA_BYTES_MAX = 4 * 1024 * 1024;
/** What an image costs in estimates, whatever its bytes: vision models bill by area. */
export const IMAGE_BYTES_EQUIVALENT = 6_000;
/** Of a rejected proposal, what is echoed back to the model. */
export const INVALID_ECHO_CHARS_MAX = 800;
/** Arguments that break a schema, as long as they stay in the conversation; longer ones are left out. */
export const INVALID_ARGUMENTS_CHARS_MAX = 16 * 1024;
/** A name that somebody else chose, where it is shown: of a tool or an id as a model wrote it. */
export const SHOWN_NAME_CHARS_MAX = 80;
/** Patterns of schemas that are held; a server that sends ever new ones gets no more of them applied. */
export const SCHEMA_PATTERNS_MAX = 4_096;
/** Steps that a backtracking engine may need for one text; beyond, the server judges it. */
export const SCHEMA_PATTERN_STEPS_MAX = 20_000_000;
/** Names of properties that one pattern may match, where it is told by them. */
export const SCHEMA_MATCHED_NAMES_MAX = 10_000;
/** Items of an array that must be unique: each is held against each. */
export const SCHEMA_UNIQUE_ITEMS_MAX = 10_000;
/** Tool messages of one turn on the wire: endpoints take no more. */
export const WIRE_TOOL_MESSAGES_MAX = 128;
export const WIRE_TOOL_NAME_CHARS_MAX = 64;
/** What one stream may bring before it is cut off. */
export const MODEL_REPLY_BYTES_MAX = 4 * 1024 * 1024;
/** One tool's description and one schema as shown to the model. */
export const TOOL_DESCRIPTION_CHARS_MAX = 4_000;
export const TOOL_SCHEMA_BYTES_MAX = 64 * 1024;
export const TOOLS_MAX = 512;
export const LIST_PAGES_MAX = 100;
/** The resource catalogue in the context. */
export const CATALOGUE_BYTES_MAX = 4 * 1024;
export const RESOURCES_MAX = 10_000;
/** What an agent says of its own end beside its result. */
export const RESULT_REASON_CHARS_MAX = 8_000;
/** Of a check that failed, what the model and the result are shown. */
export const CHECK_DETAIL_CHARS_MAX = 4_000;
/** Checks and artifacts of one result. */
export const RESULT_ITEMS_MAX = 1_000;
/** A result value above this is handed over as a reference to an artifact. */
export const INLINE_RESULT_BYTES_MAX = 8 * 1024;
export const INSTRUCTION_BYTES_MAX = 1024 * 1024;
export const CHECK_TIMEOUT_MS = 300_000;
export const CHECK_OUTPUT_BYTES_MAX = 64 * 1024;
export const HOOK_TIMEOUT_MS = 10_000;
/** A hook may print any tool result that it replaces, every character of it escaped. */
export const HOOK_OUTPUT_BYTES_MAX = 2 * TOOL_RESULT_BYTES_MAX + 64 * 1024;
/** Hooks of one agent that run side by side; the rest wait. */
export const HOOKS_AT_ONCE_MAX = 8;
export const PROGRESS_EXTENSIONS_MAX = 10;
export const STDERR_LINE_BYTES_MAX = 4 * 1024;
/** Lines of one tool server's stderr that reach telemetry per second; the rest are counted. */
export const STDERR_LINES_PER_SECOND_MAX = 20;
/** The end of a failed server's stderr that is shown. */
export const STDERR_TAIL_BYTES_MAX = 2 * 1024;
/** A tool server's restarts within one run. */
export const SERVER_RESTARTS_MAX = 3;
export const START_TIMEOUT_MS = 20_000;
/** Supervisor to agent: a ping every 5 s, three misses. */
export const PING_INTERVAL_MS = 5_000;
export const PING_MISSES_MAX = 3;
/** After the deadline, how long an agent may take to wind itself up before it is killed. */
export const DEADLINE_GRACE_MS = 2_000;
export const SPAWN_BURST_MAX = 8;
export const SPAWN_PER_SECOND_MAX = 2;
/** What a model's tail of identical output may cover before its stream is cut off. */
export const REPETITION_CHARS_MAX = 4_000;
/** Room a context window must leave for the conversation, in tokens. */
export const CONVERSATION_TOKENS_MIN = 4_000;
/** One line of a record: above everything that its payload may hold. */
export const RECORD_LINE_BYTES_MAX = 64 * 1024 * 1024;
/** What one `artifact_read` hands out. */
export const ARTIFACT_READ_BYTES_MAX = 64 * 1024;
/** Lines of one pattern search in an artifact, and characters of each that are shown. */
export const ARTIFACT_MATCHES_MAX = 100;
export const ARTIFACT_MATCH_CHARS_MAX = 400;
/** Of a run's instruction, what a listing shows. */
export const LISTING_INSTRUCTION_CHARS_MAX = 60;
/** A file of another's trajectory, for import. */
export const IMPORT_BYTES_MAX = 256 * 1024 * 1024;

/** From spawn to the frame `ready`. */
export const AGENT_START_TIMEOUT_MS = 30_000;
/** After its result, how long an agent may take to close its servers and exit. */
export const AGENT_EXIT_GRACE_MS = 3_000;
/** The rungs SIGTERM and SIGKILL of the ladder: how long each is given to work. */
export const TERM_RUNG_MS = 500;
export const KILL_RUNG_MS = 1_000;
/** Frames of one agent: what it may send in a burst, and what refills per second. */
export const FRAMES_BURST_MAX = 2_000;
export const FRAMES_PER_SECOND_MAX = 200;
/** The same in characters: parsing what a liar sends must not keep the supervisor from the others. */
export const FRAME_CHARS_BURST_MAX = 4 * FRAME_BYTES_MAX;
export const FRAME_CHARS_PER_SECOND_MAX = FRAME_BYTES_MAX / 2;
/** Frames waiting to be written to one process. */
export const FRAME_QUEUE_BYTES_MAX = 4 * FRAME_BYTES_MAX;
/** How long the process table may take before a signal goes out without it. */
export const PROCESS_TABLE_WAIT_MS = 300;
/** The same where everybody is stopped meanwhile and does no harm, and how often it is read at most. */
export const FROZEN_TABLE_WAIT_MS = 700;
export const FROZEN_TABLES_MAX = 8;
/** How long a signal may take to be sent at most, the looks at the process table before it included. */
export const SIGNAL_WAIT_MS = FROZEN_TABLES_MAX * FROZEN_TABLE_WAIT_MS;
/** How often the supervisor looks at the process table for resident sizes. */
export const MEMORY_INTERVAL_MS = 2_000;
/** Lines waiting for a server that does not read its stdin; beyond it, the server is killed. */
export const SERVER_STDIN_BYTES_MAX = 32 * 1024 * 1024;
/** After its stdin closed, and after SIGTERM, how long a tool server may take to exit. */
export const SERVER_CLOSE_MS = 150;
export const SERVER_TERM_MS = 250;

/** The longest sleep of a trigger's clock: a wall clock that jumped is noticed within it. */
export const TRIGGER_SLEEP_MS_MAX = 30_000;
/** How late a slot may be seen and still count as on time; later, it was missed. */
export const FIRE_GRACE_MS = 60_000;
/** A wall clock that went back by more than this was wrong before: its slots count anew. */
export const CLOCK_BACK_MS_MAX = 3 * 3_600_000;
/** `trigger.skipped` lines for one gap; what is over it is one line with their number. */
export const SKIPPED_LINES_MAX = 100;
/** Slots that are counted over one gap. */
export const MISSED_SLOTS_MAX = 10_000;
/** A changing URI is delivered at the latest after this many debounce times. */
export const DEBOUNCE_WAITS_MAX = 2;
export const ROUTES_MAX = 256;
/** Subscriptions that agents made themselves, over all sessions. */
export const DYNAMIC_ROUTES_MAX = 256;
/** Ends by infrastructure or crash before one event is given up and counted. */
export const DELIVERY_ATTEMPTS_MAX = 8;
/** The wait before an event whose run crashed or aborted is tried again. */
export const DELIVERY_BACKOFF: BackoffPlan = { baseMs: 1_000, capMs: 60_000, attemptsMax: 8 };
/** A loop's wait after a run without new evidence: doubling from here to this or the interval. */
export const IDLE_BACKOFF_BASE_MS = 1_000;
export const IDLE_BACKOFF_CAP_MS = 60_000;
/** Warm sessions alive at once; the longest idle makes room. */
export const SESSIONS_MAX = 16;
export const SESSION_AGE_MS_MAX = 24 * 3_600_000;
/** Body of POST /trigger/NAME. */
export const TRIGGER_BODY_BYTES_MAX = 1024 * 1024;
/** From its headers to the end of it. */
export const TRIGGER_BODY_TIMEOUT_MS = 10_000;
/** How often a watched directory that went away is looked for. */
export const FILE_WATCH_RETRY_MS = 1_000;
/** What requests in progress may take when the daemon ends. */
export const LISTEN_CLOSE_MS = 1_000;
/** A daemon's state file. */
export const STATE_BYTES_MAX = 32 * 1024 * 1024;
/** Frames `updated` of a watcher: burst and per second; changes over it wait, merged by URI. */
export const UPDATES_BURST_MAX = 500;
export const UPDATES_PER_SECOND_MAX = 100;
/** How often a daemon writes its health file and tells its service manager that it is alive. */
export const HEALTH_INTERVAL_MS = 5_000;
/** Checks and hooks of one agent that run side by side. */
export const COMMANDS_AT_ONCE_MAX = 16;
/** URIs that one run or delivery is told of; the rest comes with the next. */
export const DELIVERY_URIS_MAX = 256;
/** Pieces of evidence, and calls with their attempts, that one agent remembers at the least. */
export const EVIDENCE_ENTRIES_MAX = 32_768;
/** The notes of one agent. */
export const NOTES_BYTES_MAX = 256 * 1024;
/** Of a subagent's order: everything in words, and its seeds. */
export const OBJECTIVE_CHARS_MAX = 64 * 1024;
export const SEEDS_MAX = 16;
export const SEED_BYTES_MAX = 256 * 1024;
/** A subagent's time ends before its parent's by a tenth of what is left, at most this. */
export const CHILD_RESERVE_MS_MAX = 5_000;
