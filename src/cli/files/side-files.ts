// Reads ids (one per line) and metadata (one JSON object per line) from separate files, for formats that hold only
// vectors. Checks that each file has as many lines as there are rows.

import { readUniqueMembers } from '../../formats/json/json-scanner.js';
import { linesOf } from '../../readers/byte-stream.js';
import { idOfText } from '../../readers/json-rows.js';
import { objectText, withoutNan } from '../../readers/metadata-text.js';
import { ReadError, RowError } from '../../readers/read-error.js';
import type { RowBatch, RowReader } from '../../readers/row-batch.js';
import { createLineDecoder, textChunks } from '../../readers/utf8.js';
import { openInput } from './file-source.js';

interface SidePaths {
  readonly ids: string | undefined;
  readonly metadata: string | undefined;
  /** Whether NaN in metadata becomes null. */
  readonly isNanNull?: boolean;
}

/** Adds the ids and metadata of the side files to the rows of a reader. Throws ReadError. */
export async function withSideFiles(
  reader: RowReader,
  name: string,
  paths: SidePaths,
): Promise<RowReader> {
  const ids = paths.ids === undefined ? undefined : await openLines(paths.ids);
  const metadata = paths.metadata === undefined ? undefined : await openLines(paths.metadata);
  async function* batches(startRow: number): AsyncGenerator<RowBatch> {
    await ids?.skip(startRow);
    await metadata?.skip(startRow);
    for await (const batch of reader.batches(startRow)) {
      const { rowCount } = batch;
      const idTexts = await ids?.take(rowCount, name);
      const objects = await metadata?.take(rowCount, name);
      const rows = objects?.map(({ location, text }) =>
        objectOf(location, paths.isNanNull ? withoutNan(text) : text, idTexts === undefined),
      );
      const metadataIds = rows?.some(({ id }) => id !== undefined)
        ? rows.map(({ id }) => id)
        : undefined;
      yield {
        ...batch,
        ids: idTexts?.map(({ text }) => text) ?? metadataIds ?? batch.ids,
        metadata: rows?.map(({ text }) => text) ?? batch.metadata,
      };
    }
    await ids?.expectEnd(name);
    await metadata?.expectEnd(name);
  }
  return { ...reader, batches };
}

interface Line {
  readonly location: string;
  readonly text: string;
}

interface Lines {
  skip(count: number): Promise<void>;
  take(count: number, of: string): Promise<Line[]>;
  expectEnd(of: string): Promise<void>;
}

async function openLines(path: string): Promise<Lines> {
  const source = await openInput(path);
  const decode = createLineDecoder();
  const lines = linesOf(path, textChunks(source));
  let number = 0;
  const next = async (): Promise<Line | undefined> => {
    const found = await lines.next();
    if (found.done) return undefined;
    number = found.value.line;
    const location = `${path}:${number}`;
    return { location, text: decode(location, found.value.bytes).replace(/\r$/, '') };
  };
  return {
    async skip(count) {
      for (let at = 0; at < count; at++) await next();
    },
    async take(count, of) {
      const taken: Line[] = [];
      while (taken.length < count) {
        const line = await next();
        if (line === undefined) {
          throw new ReadError(`${path}: found ${number} lines, but ${of} has more rows`);
        }
        if (line.text === '') throw new RowError(line.location, 'empty line');
        taken.push(line);
      }
      return taken;
    },
    async expectEnd(of) {
      for (let line = await next(); line !== undefined; line = await next()) {
        if (line.text.trim() === '') continue;
        throw new RowError(line.location, `found more lines than ${of} has rows`);
      }
    },
  };
}

/** Parses a line of metadata. Its member `id` becomes the id of the row if `hasId`, when no file of ids is given. */
function objectOf(
  location: string,
  line: string,
  hasId: boolean,
): { id: string | undefined; text: string } {
  try {
    const members = readUniqueMembers(line);
    JSON.parse(line);
    const id = hasId ? members.find(({ name }) => name === 'id') : undefined;
    if (id === undefined) return { id: undefined, text: line };
    const rest = members.filter((member) => member !== id);
    return { id: idOfText(location, 'id', id.text), text: objectText(rest) };
  } catch (error) {
    if (error instanceof ReadError) throw error;
    throw new RowError(location, `not a JSON object: ${(error as Error).message}`);
  }
}
