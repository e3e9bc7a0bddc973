/** Bounds of the configuration and of what the command line says, each with its unit in its name. */

/** A configuration file, or one that lists tool servers. */
export const CONFIG_FILE_BYTES_MAX = 1024 * 1024;
/** Nesting of a configuration file, and aliases that its YAML may resolve. */
export const CONFIG_DEPTH_MAX = 64;
export const CONFIG_ALIASES_MAX = 100;
export const CONFIG_LIST_ITEMS_MAX = 10_000;
/** What `--system` names. */
export const SYSTEM_TEXT_BYTES_MAX = 256 * 1024;
/** What `--output-schema` names, how deep its schemas may nest, how many faults are told. */
export const SCHEMA_FILE_BYTES_MAX = 1024 * 1024;
export const SCHEMA_DEPTH_MAX = 128;
export const SCHEMA_FAULTS_MAX = 20;
/** A file that holds a secret. */
export const SECRET_FILE_BYTES_MAX = 64 * 1024;
/** A recording: it travels to the agent in one frame with everything else. */
export const RECORDING_FILE_BYTES_MAX = 6 * 1024 * 1024;
export const ENDPOINTS_MAX = 16;
export const SERVERS_MAX = 64;
export const TOOL_RULES_MAX = 1_000;
/** The longest duration that is taken: a leap year. */
export const CONFIG_DURATION_MS_MAX = 366 * 86_400_000;
/** Of a value at fault, what a message shows. */
export const PROBLEM_VALUE_CHARS_MAX = 120;
/** How long a model server of this machine may take to say that it is there. */
export const PROBE_TIMEOUT_MS = 2_000;
/** One line of telemetry for people. */
export const TEXT_LINE_CHARS_MAX = 400;
/** One text in a line of telemetry; with `log.content`, one text of content. */
export const TELEMETRY_FIELD_CHARS_MAX = 2_000;
export const TELEMETRY_CONTENT_CHARS_MAX = 16 * 1024;
/** What a route has where nothing else is said: its debounce, changes that wait, runs at a time. */
export const ROUTE_DEBOUNCE_MS = 250;
export const ROUTE_CAP = 16;
export const ROUTE_INFLIGHT_MAX = 4;
