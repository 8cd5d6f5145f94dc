// Reads the metadata of rows as one JSON object per row: from a column of JSON text, structs or maps, from other
// columns, which become members, or from both.

import { decodeUtf8, utf8ByteCount } from '../../common/bytes.js';
import { isJsonObject } from '../../common/metadata-path.js';
import type { Utf8Column } from '../../common/types.js';
import { type ArrowColumn, isValid } from './columns.js';
import { type CellContext, cellWriter, membersWriter } from './json-cells.js';
import type { RowIssues } from './row-issues.js';
import { quoted } from './schema.js';
import { isTextField, readStrings, type Strings } from './strings.js';
import { RowTooLong, Utf8Builder } from './utf8-builder.js';

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

export interface MetadataToRead {
  readonly count: number;
  /** JSON text, structs or maps; null if no such column exists. */
  readonly objects: ArrowColumn | null;
  readonly members: readonly ArrowColumn[];
  /** Limit for one row. */
  readonly rowBytesMax: number;
  /** Limit for all rows. */
  readonly bytesMax: number;
  /** Whether NaN becomes null. By default it is an issue, because JSON cannot express it. */
  readonly isNanNull?: boolean;
  readonly issues: RowIssues;
}

/**
 * Returns JSON text as received, in place if possible; the caller checks that it is a JSON object, unless members
 * are added to it here. Returns null if no column holds metadata. The content is undefined if there are issues.
 * Throws `invalid_arrow`.
 */
export function readMetadata(toRead: MetadataToRead): Utf8Column | null {
  const { count, objects, members, rowBytesMax, bytesMax, isNanNull = false, issues } = toRead;
  if (objects === null && members.length === 0) return null;
  const isMap = objects?.field.type.kind === 'map';
  // The member names of maps differ from row to row, like those of text.
  const texts: Strings | null =
    objects !== null && isTextField(objects.field)
      ? readStrings(objects, bytesMax)
      : isMap && members.length > 0
        ? { text: readMetadata({ ...toRead, members: [] })!, validity: null }
        : null;
  if (texts !== null && texts.validity === null && members.length === 0) return texts.text;
  const out = new Utf8Builder(count, bytesMax, rowBytesMax);
  const context: CellContext = { out, bytesMax, isNanNull, problem: null, problemPath: [] };
  // The choice of columns made sure that the names of a struct differ from those of the members.
  const isStruct = objects?.field.type.kind === 'struct';
  const own = isStruct ? objects!.children : [];
  const writeMembers = membersWriter(members, context);
  const writeAll = membersWriter([...own, ...members], context);
  const writeBare = (write: typeof writeMembers) => (row: number) => {
    out.byte(OPEN_BRACE);
    write(row, true);
    out.byte(CLOSE_BRACE);
  };
  const writeEmpty = writeBare(writeMembers);
  const writeObject =
    texts !== null
      ? mergedWriter(texts.text, members, context)
      : isMap
        ? cellWriter(objects!, context)
        : writeBare(writeAll);
  const validity = texts === null ? (objects?.validity ?? null) : texts.validity;
  for (let row = 0; row < count && !issues.isFull; row++) {
    try {
      if (isValid(validity, row)) writeObject(row);
      else writeEmpty(row);
    } catch (error) {
      if (!(error instanceof RowTooLong)) throw error;
      out.dropRow();
      const detail = `Expected metadata of at most ${rowBytesMax} bytes; found more.`;
      const rest = { detail, expected: rowBytesMax };
      issues.add({ row, member: 'metadata', code: 'invalid_metadata', ...rest });
      context.problem = null;
      context.problemPath = [];
      continue;
    }
    if (context.problem !== null) {
      const { problem, problemPath } = context;
      const where =
        problemPath.length === 0 ? '' : ` in the column ${quoted(problemPath.join('.'))}`;
      const detail = `Expected metadata that JSON can express${where}; found ${problem}.`;
      issues.add({ row, member: 'metadata', code: 'invalid_metadata', detail });
      context.problem = null;
      context.problemPath = [];
    }
    out.endRow();
  }
  return out.finish();
}

/** Creates a writer of the text of a row with the members inserted before its closing brace. */
function mergedWriter(
  { offsets, bytes }: Utf8Column,
  members: readonly ArrowColumn[],
  context: CellContext,
): (row: number) => void {
  const { out } = context;
  const writeMembers = membersWriter(members, context);
  const names = members.map(({ field }) => field.name);
  return (row) => {
    const [from, to] = [offsets[row]!, offsets[row + 1]!];
    if (names.length === 0) {
      out.raw(bytes, from, to);
      return;
    }
    const text = decodeUtf8(bytes, from, to);
    const object = parseObject(text);
    if (object === null) {
      context.problem = 'text that is not a JSON object';
      return;
    }
    const twice = names.find((name) => Object.hasOwn(object, name));
    if (twice !== undefined) {
      context.problem = `a member of "metadata" with the same name as the column ${JSON.stringify(twice)}`;
      return;
    }
    // Only white space can follow the last brace of a parsed object.
    out.raw(bytes, from, from + utf8ByteCount(text.slice(0, text.lastIndexOf('}'))));
    writeMembers(row, Object.keys(object).length === 0);
    out.byte(CLOSE_BRACE);
  };
}

function parseObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}
