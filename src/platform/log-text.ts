// Log lines for people: UTC time, level, message, and the other members as name=value. The stack of an error follows on
// separate lines. JSON lines, for programs, are written by pino itself.

const LEVEL_NAMES: Readonly<Record<number, string>> = {
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
};
const LEVEL_CHARACTERS = 5;
/** Values that need no quotes, because nothing in them ends the value or controls the terminal. */
const PLAIN = /^[^\s"=\p{C}]+$/u;

interface LoggedError {
  readonly message?: string;
  readonly stack?: string;
}

/** `line` is a JSON object from pino; both texts end with a line feed. */
export function formatLogLine(line: string): string {
  const { level, time, msg, err, ...members } = JSON.parse(line) as Record<string, unknown>;
  const levelName = LEVEL_NAMES[level as number] ?? String(level);
  const head = `${new Date(time as number).toISOString()} ${levelName.padEnd(LEVEL_CHARACTERS)}`;
  const pairs = Object.entries(members).map(([name, value]) => `${name}=${textOf(value)}`);
  const parts = [...(msg === undefined ? [] : [escapeControls(String(msg))]), pairs.join(' ')];
  const text = `${head} ${parts.filter((part) => part !== '').join('  ')}`;
  return `${text}\n${stackOf(err)}`;
}

function textOf(value: unknown): string {
  if (typeof value === 'string' && PLAIN.test(value)) return value;
  return escapeControls(JSON.stringify(value));
}

function stackOf(error: unknown): string {
  if (error === undefined || error === null) return '';
  const { stack, message } = error as LoggedError;
  const lines = (stack ?? message ?? JSON.stringify(error)).split('\n');
  return lines.map((line) => `    ${escapeControls(line.trim())}\n`).join('');
}

/** Text from clients must not move the cursor or start a new line. */
function escapeControls(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`;
  });
}
