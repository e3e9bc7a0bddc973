/** Rows of the table of options: limits. */

import type { Row } from "./option.ts";
import { DEFAULT_LIMITS } from "../core/limits.ts";
import { formatDuration, formatSize } from "../core/units.ts";
import { COUNT_OR_NONE, TIME, TIME_OR_NONE } from "./shapes.ts";

/** Options of the group `limits`. */
export const LIMITS_OPTIONS: readonly Row[] = [
  count("max_steps", DEFAULT_LIMITS.maxSteps, "turns of one agent"),
  count("max_tokens", DEFAULT_LIMITS.maxTokens, "prompt and completion tokens of one agent"),
  {
    name: "max_cost",
    file: "limits.max_cost",
    metavar: "USD",
    shape: { kind: "number", min: 0, above: true },
    group: "limits",
    help: "cost of an agent and its subagents together; needs model.prices",
  },
  count("max_calls", DEFAULT_LIMITS.maxCalls, "tool calls of one agent"),
  count("max_calls_per_turn", DEFAULT_LIMITS.maxCallsPerTurn, "tool calls of one reply"),
  {
    name: "deadline",
    file: "limits.deadline",
    shape: TIME,
    default: formatDuration(DEFAULT_LIMITS.deadlineMs),
    group: "limits",
    help: "wall clock of one run",
  },
  {
    name: "lifetime",
    file: "trigger.lifetime",
    shape: TIME_OR_NONE,
    default: "0s",
    defaultText: "none",
    group: "limits",
    help: "wall clock of a daemon as a whole",
  },
  {
    name: "lifetime_tokens",
    file: "trigger.lifetime_tokens",
    shape: COUNT_OR_NONE,
    default: 0,
    defaultText: "none",
    group: "limits",
    help: "tokens of a daemon as a whole",
  },
  count("idle_limit", DEFAULT_LIMITS.idleLimit, "consecutive turns without new evidence"),
  count("fail_limit", DEFAULT_LIMITS.failLimit, "consecutive turns without any success"),
  count("repeat_cap", DEFAULT_LIMITS.repeatCap, "identical attempts that are executed"),
  count("keep_verbatim", DEFAULT_LIMITS.keepVerbatim, "last tool results kept whole"),
  {
    name: "compact_at",
    file: "limits.compact_at",
    shape: { kind: "number", min: 0, above: true, max: 1 },
    default: DEFAULT_LIMITS.compactAt,
    group: "limits",
    help: "share of the context window",
  },
  {
    name: "observation_bytes",
    file: "limits.observation_bytes",
    flag: null,
    shape: { kind: "size", min: 256 },
    default: formatSize(DEFAULT_LIMITS.observationBytesMax),
    group: "limits",
    help: "of one result, what the model is shown",
  },
  count("max_depth", DEFAULT_LIMITS.maxDepth, "levels of subagents", 0),
  count("max_children", DEFAULT_LIMITS.maxChildren, "subagents of one agent", 0),
  count("max_subagents", DEFAULT_LIMITS.maxSubagents, "subagents of the tree", 0),
  count("tree_tokens", DEFAULT_LIMITS.treeTokensMax, "tokens of the tree"),
  {
    name: "max_memory",
    file: "limits.max_memory",
    shape: { kind: "size", min: 64 * 1024 ** 2 },
    default: formatSize(DEFAULT_LIMITS.memoryBytesMax),
    group: "limits",
    help: "resident memory of one agent",
  },
  {
    name: "progress_timeout",
    file: "limits.progress_timeout",
    flag: null,
    shape: TIME,
    default: formatDuration(DEFAULT_LIMITS.progressTimeoutMs),
    group: "limits",
    help: "silence of one agent before it is looked at",
  },
];

function count(name: string, value: number, help: string, min = 1): Row {
  return {
    name,
    file: `limits.${name}`,
    shape: { kind: "int", min },
    default: value,
    group: "limits",
    help,
  };
}
