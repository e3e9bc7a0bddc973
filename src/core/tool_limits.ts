/** Bounds of the built-in tool servers fs, http and exec, each with its unit in its name. */

/** One JSON-RPC line from a client: a `write` carries a whole file in it. */
export const REQUEST_LINE_BYTES_MAX = 16 * 1024 * 1024;
/** Tool calls of one server under way at once; the rest wait. */
export const PARALLEL_CALLS_MAX = 16;
export const WAITING_CALLS_MAX = 256;
/** After the client closed stdin, how long calls under way may still take. */
export const DRAIN_MS = 1_000;

/** A path as a caller writes it. */
export const PATH_CHARS_MAX = 4_096;
export const LIST_ENTRIES_DEFAULT = 500;
export const LIST_ENTRIES_MAX = 2_000;
/** Names read from one directory before it is called too large. */
export const DIRECTORY_NAMES_MAX = 100_000;
export const GLOB_PATHS_DEFAULT = 500;
export const GLOB_PATHS_MAX = 2_000;
export const SEARCH_MATCHES_DEFAULT = 100;
export const SEARCH_MATCHES_MAX = 1_000;
export const SEARCH_CONTEXT_LINES_MAX = 10;
/** Matches of one file before search goes on with the next. */
export const SEARCH_MATCHES_PER_FILE_MAX = 200;
/** A longer line is searched up to here, and that is said. */
export const SEARCH_LINE_BYTES_MAX = 64 * 1024;
/** What is shown of a matching line. */
export const SEARCH_LINE_SHOWN_CHARS_MAX = 400;
/** Larger files are left out of a search, and counted. */
export const SEARCH_FILE_BYTES_MAX = 8 * 1024 * 1024;
/** One walk, as `glob` and `search` make it. */
export const WALK_ENTRIES_MAX = 200_000;
export const WALK_DEPTH_MAX = 64;
export const WALK_TIME_MS = 20_000;
/** How long a walk may hold the thread before messages are looked at. */
export const SLICE_MS = 25;
export const PATTERN_CHARS_MAX = 1_000;
/** Instructions that a pattern may compile to: repetitions are unrolled. */
export const PATTERN_NODES_MAX = 4_000;
/** States of the automaton that are kept before it starts anew. */
export const PATTERN_STATES_MAX = 1_000;
/** Instructions looked at for one line, beyond what the automaton remembers. */
export const PATTERN_WORK_MAX = 20_000_000;
export const READ_LINES_DEFAULT = 2_000;
export const READ_LINES_MAX = 20_000;
/** Bytes of text that one `read` answers with. */
export const READ_BYTES_MAX = 256 * 1024;
/** A longer line is cut in what is shown. */
export const READ_LINE_BYTES_MAX = 16 * 1024;
/** `read` counts lines in files up to here; larger ones are read by bytes only. */
export const READ_FILE_BYTES_MAX = 512 * 1024 * 1024;
/** An image up to here is answered as an image. */
export const IMAGE_BYTES_MAX = 5 * 1024 * 1024;
/** Missing directories that one `write` makes: what lies deeper, no walk would find again. */
export const DIRECTORIES_MADE_MAX = WALK_DEPTH_MAX;
export const WRITE_BYTES_MAX = 8 * 1024 * 1024;
export const EDIT_FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Opening a regular file takes no time; what takes longer is none. */
export const OPEN_TIMEOUT_MS = 5_000;

/** One fetch: everything of it together, redirects and all. */
export const FETCH_TIMEOUT_MS_DEFAULT = 30_000;
export const FETCH_TIMEOUT_MS_MAX = 120_000;
export const FETCH_REDIRECTS_MAX = 5;
export const FETCH_BYTES_DEFAULT = 1024 * 1024;
export const FETCH_BYTES_MAX = 8 * 1024 * 1024;
export const FETCH_REQUEST_BYTES_MAX = 8 * 1024 * 1024;
export const FETCH_URL_CHARS_MAX = 8_192;
export const FETCH_HEADERS_MAX = 64;
export const FETCH_HEAD_BYTES_MAX = 64 * 1024;

/** One command. */
export const EXEC_TIMEOUT_MS_DEFAULT = 60_000;
export const EXEC_TIMEOUT_MS_MAX = 600_000;
/** Between SIGTERM and SIGKILL to a command's group. */
export const EXEC_GRACE_MS = 1_000;
/** After the program itself is gone, how long its output pipes may stay open. */
export const EXEC_PIPE_LINGER_MS = 500;
/** Of each of stdout and stderr, head and tail together. */
export const EXEC_OUTPUT_BYTES_MAX = 64 * 1024;
export const EXEC_ARGUMENTS_MAX = 1_000;
export const EXEC_ARGUMENT_BYTES_MAX = 128 * 1024;
export const EXEC_STDIN_BYTES_MAX = 8 * 1024 * 1024;
export const EXEC_ENVIRONMENT_MAX = 100;
