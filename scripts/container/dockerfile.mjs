// Parsers for the subset of Dockerfile and .dockerignore that this repository uses. Anything else is an
// error, so that nothing is ignored silently.

const KNOWN = new Set(
  'ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK RUN STOPSIGNAL USER VOLUME WORKDIR'.split(
    ' ',
  ),
);

/**
 * The stages in order: { name, base, instructions: [{ line, keyword, flags, words, text }] }. The name of
 * an unnamed stage is its number, as a string. ARGs are replaced by their defaults.
 */
export function parseDockerfile(text) {
  const values = new Map();
  const stages = [];
  for (const { line, source } of logicalLines(text)) {
    const [, keyword, rest] = /^([A-Z]+)\s+(.*)$/s.exec(source) ?? [];
    if (!KNOWN.has(keyword)) throw new Error(`line ${line}: unsupported instruction: ${source}`);
    const instruction = { line, keyword, ...readWords(substitute(rest, values, line)) };
    if (keyword === 'ARG') {
      const [name, value = ''] = instruction.text.split('=');
      values.set(name, value);
    } else if (keyword === 'FROM') {
      const [base, as, name = String(stages.length)] = instruction.words;
      if (as !== undefined && as !== 'AS')
        throw new Error(`line ${line}: expected AS after ${base}`);
      stages.push({ name, base, instructions: [] });
    } else {
      if (stages.length === 0) throw new Error(`line ${line}: ${keyword} before the first FROM`);
      stages.at(-1).instructions.push(instruction);
    }
  }
  return stages;
}

/** Lines without comments and empty lines; lines ending in a backslash are joined with the next. */
function* logicalLines(text) {
  let joined = '';
  let first = 0;
  for (const [at, raw] of text.split('\n').entries()) {
    if (/^\s*(#|$)/.test(raw)) continue;
    if (joined === '') first = at + 1;
    const isOpen = raw.endsWith('\\');
    joined += isOpen ? `${raw.slice(0, -1).trim()} ` : raw.trim();
    if (isOpen) continue;
    yield { line: first, source: joined };
    joined = '';
  }
}

/** Replaces `${NAME}` by the default of an ARG. */
function substitute(text, values, line) {
  return text.replace(/\$\{(\w+)\}/g, (_, name) => {
    if (values.has(name)) return values.get(name);
    throw new Error(`line ${line}: there is no ARG ${name}`);
  });
}

/** `words` are the strings of the exec form, or the words of the shell form. */
function readWords(text) {
  const flags = {};
  const rest = text.replace(/^(--[\w-]+=\S+\s+)+/, (found) => {
    for (const flag of found.trim().split(/\s+/)) {
      const [, name, value] = /^--([\w-]+)=(.*)$/.exec(flag);
      flags[name] = value;
    }
    return '';
  });
  const list = /\[.*\]$/.exec(rest)?.[0];
  return { flags, text: rest, words: list ? JSON.parse(list) : rest.split(/\s+/) };
}

/** The words of ENV as an object. */
export function readEnvironment({ words }) {
  return Object.fromEntries(words.map((word) => word.split(/=(.*)/s).slice(0, 2)));
}

/**
 * Returns a function that tells whether a path, relative to the context, is ignored. The last pattern
 * that matches the path or a parent directory decides; `!` negates.
 */
export function createIgnore(text) {
  const rules = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const isNegated = line.startsWith('!');
      return { isNegated, pattern: toPattern(isNegated ? line.slice(1) : line) };
    });
  return (path) => {
    const parts = path.split('/');
    const prefixes = parts.map((_, at) => parts.slice(0, at + 1).join('/'));
    const last = rules.findLast(({ pattern }) => prefixes.some((prefix) => pattern.test(prefix)));
    return last !== undefined && !last.isNegated;
  };
}

function toPattern(glob) {
  const source = glob
    .replace(/^\/|\/$/g, '')
    .replace(/[.+^${}()|\\]/g, '\\$&')
    .replace(/\*\*\/|\*\*|\*|\?/g, (found) => {
      return { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' }[found];
    });
  return new RegExp(`^${source}$`);
}
