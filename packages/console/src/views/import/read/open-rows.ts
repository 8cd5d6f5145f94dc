// Recognizes the format of a file by its first bytes, then by its name, and opens it. Readers are loaded
// when they are needed.

import { readBytes, type SliceableFile } from './file-bytes.js';
import { ImportError, type RowSource } from './row-source.js';

const HEAD_BYTES = 1_024;
const FORMATS = 'Parquet, Arrow, NDJSON, a JSON array, CSV or npy';

/** Throws ImportError for other formats and damaged files. */
export async function openRows(file: SliceableFile): Promise<RowSource> {
  if (file.size === 0) throw new ImportError('the file is empty');
  const head = await readBytes(file, 0, Math.min(file.size, HEAD_BYTES));
  const magic = String.fromCharCode(...head.subarray(0, 6));
  if (magic.startsWith('PAR1')) return (await import('./parquet-rows.js')).openParquet(file);
  if (magic === 'ARROW1') return (await import('./arrow-rows.js')).openArrow(file, true);
  if (magic.startsWith('\xff\xff\xff\xff')) {
    return (await import('./arrow-rows.js')).openArrow(file, false);
  }
  if (magic === '\x93NUMPY') return (await import('./npy-rows.js')).openNpy(file);
  if (magic.startsWith('\x1f\x8b')) {
    throw new ImportError(`found a gzip file, expected ${FORMATS}; unpack it first`);
  }
  if (head.includes(0)) throw new ImportError(`found bytes of another format, expected ${FORMATS}`);
  return openText(file, head);
}

async function openText(file: SliceableFile, head: Uint8Array): Promise<RowSource> {
  const first = new TextDecoder().decode(head).trimStart()[0];
  if (/\.(csv|tsv|tab)$/i.test(file.name) || (first !== '{' && first !== '[')) {
    return (await import('./csv-rows.js')).openCsv(file);
  }
  return (await import('./json-rows.js')).openJson(file, first === '[');
}
