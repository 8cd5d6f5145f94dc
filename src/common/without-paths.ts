// Messages for clients, who need not know where files are on the disk of the server. The log and `sagitta doctor`
// have the paths.

/** An absolute path at the beginning of a word. */
const PATH = /(^|[\s"'`(=])(?:[A-Za-z]:[\\/]|\/)[^\s"'`),;:]*/g;

/** The text with the last names of paths in place of the paths. */
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
