/** What the operator says of tools: grants, and rules of which the longest glob wins, key by key. */

import { grantsTool, matchesTool } from "../core/glob.ts";
import type { ToolRule, ToolSettings } from "../wire/payload.ts";

/** The rules of one tool, resolved. Null: nothing was said. */
export interface ResolvedRule {
  granted: boolean;
  readOnly: boolean | null;
  idempotent: boolean;
  poll: boolean;
  timeoutMs: number;
  rate: { calls: number; perMs: number; glob: string } | null;
}

/** Resolves the rules of `server/tool` names. */
export class Rules {
  readonly #settings: ToolSettings;
  /** Longest glob first; of equal lengths, the later one, as with every other override. */
  readonly #rules: readonly ToolRule[];
  readonly #resolved = new Map<string, ResolvedRule>();

  constructor(settings: ToolSettings) {
    this.#settings = settings;
    this.#rules = settings.rules.toReversed().toSorted((a, b) => b.glob.length - a.glob.length);
  }

  /** The rules of one tool; resolved once, since a list may be taken every turn. */
  resolve(name: string): ResolvedRule {
    let rule = this.#resolved.get(name);
    if (rule === undefined) this.#resolved.set(name, rule = this.#resolve(name));
    return rule;
  }

  #resolve(name: string): ResolvedRule {
    const matching = this.#rules.filter((rule) => matchesTool(rule.glob, name));
    const said = <Key extends "grant" | "readOnly" | "idempotent" | "poll" | "timeoutMs">(
      key: Key,
    ): ToolRule[Key] | null => matching.find((rule) => rule[key] !== null)?.[key] ?? null;
    const rated = matching.find((rule) => rule.rate !== null);
    return {
      granted: grantsTool(this.#settings.grant, name) && said("grant") !== false,
      readOnly: said("readOnly"),
      idempotent: said("idempotent") ?? false,
      poll: said("poll") ?? false,
      timeoutMs: said("timeoutMs") ?? this.#settings.timeoutMs,
      rate: rated?.rate ? { ...rated.rate, glob: rated.glob } : null,
    };
  }
}
