/** The table of options: the one source of flags, variables, file keys and defaults. */

import { assert } from "../core/assert.ts";
import { makeOption, type Option } from "./option.ts";
import { LIMITS_OPTIONS } from "./rows_limits.ts";
import { MODE_OPTIONS } from "./rows_mode.ts";
import { OUTPUT_OPTIONS } from "./rows_output.ts";
import { MODEL_OPTIONS, TASK_OPTIONS } from "./rows_task.ts";
import { SAFETY_OPTIONS, TOOLS_OPTIONS } from "./rows_tools.ts";

/** Every option, by group. Of two that share a key, the later wins within one level. */
export const OPTIONS: readonly Option[] = [
  ...TASK_OPTIONS,
  ...MODEL_OPTIONS,
  ...TOOLS_OPTIONS,
  ...LIMITS_OPTIONS,
  ...MODE_OPTIONS,
  ...SAFETY_OPTIONS,
  ...OUTPUT_OPTIONS,
].map(makeOption);

/** The option of this name; a name that is not in the table is a bug. */
export function optionNamed(name: string): Option {
  const option = OPTIONS.find((each) => each.name === name);
  assert(option, `no option ${name}`);
  return option;
}
