/** Commands as users write them, split into words as a POSIX shell would: nothing is expanded. */

import { failed, type Outcome, success } from "../core/outcome.ts";

/**
 * The words of a command line. Blanks separate; a backslash quotes the next character; single
 * quotes keep everything; in double quotes a backslash quotes `$`, a backtick, `"`, `\` and a line
 * end (POSIX XCU 2.2). Variables, globs, pipes and redirections mean nothing: they stay as written.
 */
export function splitWords(text: string): Outcome<string[], string> {
  const words: string[] = [];
  let word: string | null = null;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (c === " " || c === "\t" || c === "\n" || c === "\r") {
      if (word !== null) words.push(word);
      word = null;
    } else if (c === "\\") {
      const next = text[++i];
      if (next === undefined) return failed("it ends with a lone backslash");
      // A backslash before a line end joins the lines.
      if (next !== "\n") word = (word ?? "") + next;
    } else if (c === "'") {
      const end = text.indexOf("'", i + 1);
      if (end === -1) return failed(`the single quote at character ${i + 1} is not closed`);
      word = (word ?? "") + text.slice(i + 1, end);
      i = end;
    } else if (c === '"') {
      const quoted = readDoubleQuoted(text, i + 1);
      if (quoted === null) return failed(`the double quote at character ${i + 1} is not closed`);
      word = (word ?? "") + quoted.text;
      i = quoted.end;
    } else word = (word ?? "") + c;
  }
  if (word !== null) words.push(word);
  if (words.length === 0) return failed("it is empty");
  if (words[0] === "") return failed("its program is an empty word");
  if (words.some((each) => each.includes("\0"))) return failed("it has a NUL character");
  return success(words);
}

function readDoubleQuoted(text: string, start: number): { text: string; end: number } | null {
  let out = "";
  for (let i = start; i < text.length; i++) {
    const c = text[i]!;
    if (c === '"') return { text: out, end: i };
    if (c === "\\") {
      const next = text[i + 1];
      if (next === undefined) return null;
      if (next === "\n") i++;
      else if ('$`"\\'.includes(next)) {
        out += next;
        i++;
      } else out += c;
    } else out += c;
  }
  return null;
}
