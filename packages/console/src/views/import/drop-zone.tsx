// A zone to drop or choose a file.

import { Upload } from 'lucide-react';
import { type DragEvent, useState } from 'react';
import { classNames } from '../../ui/class-names.js';
import styles from './import.module.css';
import { chooseFile } from './import-session.js';

export function DropZone() {
  const [isOver, setOver] = useState(false);
  const open = (file: File | undefined) => {
    if (file !== undefined) void chooseFile(file);
  };
  const onDrag = (event: DragEvent) => {
    event.preventDefault();
    setOver(event.type !== 'dragleave');
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the input inside does the same for the keyboard
    <div
      className={classNames(styles.dropZone, isOver && styles.over)}
      onDragEnter={onDrag}
      onDragOver={onDrag}
      onDragLeave={onDrag}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        open(event.dataTransfer.files[0]);
      }}
    >
      <Upload size={28} strokeWidth={1.4} aria-hidden />
      <label className={styles.choose}>
        Choose a file
        <input
          type="file"
          className="visually-hidden"
          onChange={(event) => open(event.target.files?.[0])}
        />
      </label>
      <p>or drop it here</p>
      <p className={styles.muted}>
        Parquet, Arrow, NDJSON, a JSON array, CSV, npy, npz, fvecs, fbin, GloVe or word2vec, of any
        size: the file is read in pieces. To resume an interrupted import, choose the same file
        again.
      </p>
    </div>
  );
}
