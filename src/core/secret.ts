/**
 * The one type that holds a secret. It prints as `***` however it is printed, and serialises as
 * `***`; only {@link Secret.reveal} gives the value, at the place that sends it.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. Call it only where the value leaves for the party it belongs to. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "***";
  }

  toJSON(): string {
    return "***";
  }

  [Symbol.for("Deno.customInspect")](): string {
    return "***";
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "***";
  }
}

/** A text with holes for secrets: literal parts and names into a {@link Vault}. */
export type SecretText = (string | { secret: string })[];

/** Secrets by name, as resolved once from environment and files. */
export class Vault {
  readonly #secrets = new Map<string, Secret>();
  #needles: string[] = [];

  /** Adds a secret under a name such as `env:TOKEN` or `file:/run/secrets/llm`. */
  add(name: string, value: string): void {
    this.#secrets.set(name, new Secret(value));
    this.#needles = [];
    for (const secret of this.#secrets.values()) {
      const text = secret.reveal();
      // Below four characters a mask would shred ordinary text and hide nothing.
      if (text.length < 4) continue;
      for (const form of [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text)]) {
        if (!this.#needles.includes(form)) this.#needles.push(form);
      }
    }
    this.#needles.sort((a, b) => b.length - a.length);
  }

  has(name: string): boolean {
    return this.#secrets.has(name);
  }

  get(name: string): Secret | undefined {
    return this.#secrets.get(name);
  }

  /** Every name with its value in the clear: only for the frame that hands them to an agent. */
  revealAll(): Record<string, string> {
    return Object.fromEntries([...this.#secrets].map(([name, secret]) => [name, secret.reveal()]));
  }

  /** A text with its holes filled. */
  fill(text: SecretText): Secret {
    return new Secret(
      text.map((part) =>
        typeof part === "string" ? part : this.#secrets.get(part.secret)?.reveal() ?? ""
      ).join(""),
    );
  }

  /** The text with every known secret replaced by `***`. */
  mask(text: string): string {
    let out = text;
    for (const needle of this.#needles) {
      if (out.includes(needle)) out = out.replaceAll(needle, "***");
    }
    return out;
  }

  static from(values: Record<string, string>): Vault {
    const vault = new Vault();
    for (const [name, value] of Object.entries(values)) vault.add(name, value);
    return vault;
  }
}
