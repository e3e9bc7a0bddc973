/**
 * What a regular expression may cost an engine that goes back and tries again. An upper bound from
 * its form alone: how many ways lead through it, and how many steps are made on all of them.
 */

/** Ways through a piece of an expression, and steps on all of them. */
interface Cost {
  ways: number;
  steps: number;
}

const ONE: Cost = { ways: 1, steps: 1 };
const NONE: Cost = { ways: 1, steps: 0 };
const NESTING_MAX = 100;

/** Steps that matching a text of `length` characters takes at most; infinite if it is not known. */
export function patternSteps(source: string, length: number): number {
  const scanner = new CostScanner(source, length);
  const { steps } = scanner.scan();
  const starts = source.startsWith("^") && !source.includes("|") ? 1 : length + 1;
  return Number.isNaN(steps) ? Infinity : steps * starts;
}

class CostScanner {
  readonly #source: string;
  readonly #length: number;
  #at = 0;
  #depth = 0;

  constructor(source: string, length: number) {
    this.#source = source;
    this.#length = length;
  }

  scan(): Cost {
    const cost = this.#either();
    return this.#at < this.#source.length ? { ways: Infinity, steps: Infinity } : cost;
  }

  #either(): Cost {
    if (++this.#depth > NESTING_MAX) return { ways: Infinity, steps: Infinity };
    let cost = this.#sequence();
    while (this.#source[this.#at] === "|") {
      this.#at++;
      const other = this.#sequence();
      cost = { ways: cost.ways + other.ways, steps: cost.steps + other.steps };
    }
    this.#depth--;
    return cost;
  }

  #sequence(): Cost {
    let cost = NONE;
    for (;;) {
      const next = this.#source[this.#at];
      if (next === undefined || next === "|" || next === ")") return cost;
      const piece = this.#repeat(this.#atom());
      cost = {
        ways: cost.ways * piece.ways,
        steps: cost.steps + cost.ways * piece.steps,
      };
    }
  }

  #atom(): Cost {
    const character = this.#source[this.#at++];
    if (character === "\\") {
      // What a group held may be as long as the text.
      if (/[1-9k]/.test(this.#source[this.#at++] ?? "")) {
        return { ways: 1, steps: this.#length + 1 };
      }
    } else if (character === "[") this.#skipClass();
    else if (character === "(") return this.#group();
    return ONE;
  }

  /** What was looked around for once is not looked for again: there is one way through it. */
  #group(): Cost {
    const kind = /^\?(?:<?[=!]|:|<[^>]*>)/.exec(this.#source.slice(this.#at, this.#at + 80))?.[0] ??
      "";
    this.#at += kind.length;
    const inner = this.#either();
    if (this.#source[this.#at] !== ")") return { ways: Infinity, steps: Infinity };
    this.#at++;
    return /[=!]$/.test(kind) ? { ways: 1, steps: inner.steps } : inner;
  }

  #skipClass(): void {
    for (; this.#at < this.#source.length; this.#at++) {
      if (this.#source[this.#at] === "\\") this.#at++;
      else if (this.#source[this.#at] === "]") break;
    }
    this.#at++;
  }

  #repeat(part: Cost): Cost {
    const bounds = /^(?:[*+?]|\{(\d+)(,)?(\d*)\})\??/.exec(
      this.#source.slice(this.#at, this.#at + 24),
    );
    if (bounds === null) return part;
    this.#at += bounds[0].length;
    const [sign] = bounds[0];
    const min = sign === "{" ? Number(bounds[1]) : sign === "+" ? 1 : 0;
    const max = sign === "{"
      ? bounds[2] === undefined ? min : bounds[3] === "" ? Infinity : Number(bounds[3])
      : sign === "?"
      ? 1
      : Infinity;
    const most = Math.min(max, this.#length + 1);
    // Each round multiplies the ways of the rounds before it.
    const ways = part.ways === 1 ? Math.max(1, most - min + 1) : 2 * part.ways ** most;
    return { ways, steps: part.steps * (part.ways === 1 ? most + 1 : ways) };
  }
}
