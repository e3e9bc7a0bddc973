/** The test's side of updating_server.ts: changes resources, and tells every living process. */

/** Resources that change on command, served by every process that was started on the directory. */
export class UpdatingServers {
  readonly directory: string;
  readonly versions: Map<string, number>;

  constructor(directory: string, uris: readonly string[]) {
    this.directory = directory;
    this.versions = new Map(uris.map((uri) => [uri, 0]));
    Deno.mkdirSync(directory, { recursive: true });
    this.#write();
  }

  /** The command that serves them, for a configuration. */
  command(...more: string[]): string[] {
    const script = new URL("./updating_server.ts", import.meta.url).pathname;
    return [
      Deno.execPath(),
      "run",
      "--no-prompt",
      "--quiet",
      "--allow-read",
      "--allow-write",
      "--allow-net=127.0.0.1",
      decodeURIComponent(script),
      this.directory,
      ...more,
    ];
  }

  /** Raises versions and notifies. */
  async update(...uris: string[]): Promise<void> {
    for (const uri of uris) this.versions.set(uri, (this.versions.get(uri) ?? 0) + 1);
    this.#write();
    await this.#tell("/notify", uris);
  }

  /** Raises versions without a word. */
  updateSilently(...uris: string[]): void {
    for (const uri of uris) this.versions.set(uri, (this.versions.get(uri) ?? 0) + 1);
    this.#write();
  }

  async add(...uris: string[]): Promise<void> {
    for (const uri of uris) this.versions.set(uri, 0);
    this.#write();
    await this.#tell("/listed", []);
  }

  /** Ends every living process. */
  async exit(): Promise<void> {
    await this.#tell("/exit", []);
  }

  /** What each living process is subscribed to. */
  async subscribed(): Promise<string[][]> {
    return await this.#tell("/subscribed", []);
  }

  #write(): void {
    const draft = `${this.directory}/.resources`;
    Deno.writeTextFileSync(draft, JSON.stringify(Object.fromEntries(this.versions)));
    Deno.renameSync(draft, `${this.directory}/resources.json`);
  }

  async #tell(path: string, body: string[]): Promise<string[][]> {
    const answers: string[][] = [];
    for (const entry of [...Deno.readDirSync(this.directory)]) {
      if (!/^\d+$/.test(entry.name)) continue;
      const port = Deno.readTextFileSync(`${this.directory}/${entry.name}`);
      try {
        const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
          method: "POST",
          body: JSON.stringify(body),
        });
        answers.push(await reply.json());
      } catch {
        // It is gone.
        Deno.removeSync(`${this.directory}/${entry.name}`);
      }
    }
    return answers;
  }
}
