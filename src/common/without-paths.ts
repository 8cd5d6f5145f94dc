// Removes paths from messages for clients, who need not know where files are on the server. The log and `sagitta
// doctor` show the full paths.

/** An absolute path at the beginning of a word. */
const PATH = /(^|[\s"'`(=])(?:[A-Za-z]:[\\/]|\/)[^\s"'`),;:]*/g;

/** Replaces each path by its last name. */
export function withoutPaths(text: string): string {
  return text.replace(PATH, (found, before: string) => {
    const name = found
      .slice(before.length)
      .replace(/[\\/]+$/, '')
      .split(/[\\/]/)
      .at(-1)!;
    return before + name;
  });
}
