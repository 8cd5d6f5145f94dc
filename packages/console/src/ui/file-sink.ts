// A file on the user's machine that is written as data arrives: streamed if the browser supports it, and
// otherwise held in memory until it is complete.

import { saveFile } from './save-file.js';

export interface FileSink {
  write(chunk: Uint8Array): Promise<void>;
  /** Completes the file. */
  close(): Promise<void>;
  /** Discards the file. */
  abort(): Promise<void>;
}

/** Missing in TypeScript's types. */
type SavePicker = (options: { readonly suggestedName: string }) => Promise<FileSystemFileHandle>;

/** Asks where to save the file. Undefined if the user cancels. */
export async function openFileSink(name: string, mediaType: string): Promise<FileSink | undefined> {
  const { showSaveFilePicker } = window as { readonly showSaveFilePicker?: SavePicker };
  if (showSaveFilePicker === undefined) return memorySink(name, mediaType);
  try {
    const handle = await showSaveFilePicker.call(window, { suggestedName: name });
    const stream = await handle.createWritable();
    return {
      write: (chunk) => stream.write(chunk as Uint8Array<ArrayBuffer>),
      close: () => stream.close(),
      abort: () => stream.abort(),
    };
  } catch (error) {
    if ((error as Error).name === 'AbortError') return undefined;
    throw error;
  }
}

function memorySink(name: string, mediaType: string): FileSink {
  const parts: BlobPart[] = [];
  return {
    async write(chunk) {
      parts.push(chunk as Uint8Array<ArrayBuffer>);
    },
    async close() {
      saveFile(name, mediaType, parts);
    },
    async abort() {
      parts.length = 0;
    },
  };
}
