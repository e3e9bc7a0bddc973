import type { ToolSpec } from "../ports/model.ts";

/** The `tools` of a request as JSON: each specification is rendered once, and so is each list. */
export class ToolList<Rendered> {
  readonly #renderOne: (spec: ToolSpec) => Rendered;
  readonly #join: (rendered: readonly Rendered[]) => string;
  readonly #specs = new WeakMap<ToolSpec, Rendered>();
  #last: { tools: readonly ToolSpec[]; json: string } | null = null;

  constructor(
    render: (spec: ToolSpec) => Rendered,
    join: (rendered: readonly Rendered[]) => string,
  ) {
    this.#renderOne = render;
    this.#join = join;
  }

  /** The members of the list, joined by commas. */
  render(tools: readonly ToolSpec[]): string {
    if (this.#last?.tools !== tools) {
      this.#last = { tools, json: this.#join(tools.map((spec) => this.#rendered(spec))) };
    }
    return this.#last.json;
  }

  #rendered(spec: ToolSpec): Rendered {
    let rendered = this.#specs.get(spec);
    if (rendered === undefined) this.#specs.set(spec, rendered = this.#renderOne(spec));
    return rendered;
  }
}
