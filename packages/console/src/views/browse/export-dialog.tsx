// Exports the vectors that the browse view shows, or the selected ones, to a file.

import type { CollectionRecord, JsonObject } from '@sagitta/client';
import { useEffect, useRef, useState } from 'react';
import { fetchByIds } from '../../api/by-ids.js';
import { session } from '../../api/session.js';
import { Button } from '../../ui/button.js';
import { Dialog, DialogActions } from '../../ui/dialog.js';
import { Checkbox, SelectField } from '../../ui/field.js';
import { openFileSink } from '../../ui/file-sink.js';
import { formatBytes, formatCount } from '../../ui/format.js';
import { notify } from '../../ui/notices.js';
import { ErrorMessage } from '../../ui/states.js';
import styles from './browse.module.css';
import { EXPORT_FORMATS, type ExportFormat, exportText, filterOfIds } from './export-rows.js';

interface ExportDialogProps {
  readonly collection: CollectionRecord;
  readonly filter: JsonObject | undefined;
  /** The metadata paths that the table shows. */
  readonly paths: readonly string[];
  /** The number of rows in the table. */
  readonly rowCount: number;
  readonly selectedIds: readonly string[];
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

export function ExportDialog(props: ExportDialogProps) {
  return (
    <Dialog title="Export vectors" isOpen={props.isOpen} onClose={props.onClose}>
      <ExportForm {...props} />
    </Dialog>
  );
}

interface Choice {
  readonly format: ExportFormat;
  readonly isSelection: boolean;
  readonly includeValues: boolean;
  /** Whether only the metadata that the table shows is exported; for text formats. */
  readonly isShownOnly: boolean;
}

function ExportForm(props: ExportDialogProps) {
  const { rowCount, selectedIds, onClose } = props;
  const [choice, setChoice] = useState<Choice>({
    format: 'csv',
    isSelection: selectedIds.length > 0,
    includeValues: false,
    isShownOnly: true,
  });
  const change = (part: Partial<Choice>) => setChoice({ ...choice, ...part });
  const { progress, error, isBusy, run, stop } = useExport(props, choice);
  const isText = choice.format === 'csv' || choice.format === 'ndjson';
  const isTooLong = choice.isSelection && !isText && filterOfIds(selectedIds) === undefined;
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <SelectField
        label="Vectors"
        value={choice.isSelection ? 'selection' : 'shown'}
        options={[
          { value: 'shown', label: `All in the table (${formatCount(rowCount)})` },
          ...(selectedIds.length === 0
            ? []
            : [
                {
                  value: 'selection' as const,
                  label: `Selected (${formatCount(selectedIds.length)})`,
                },
              ]),
        ]}
        onChange={(value) => change({ isSelection: value === 'selection' })}
      />
      <SelectField
        label="Format"
        error={
          isTooLong
            ? 'A selection this large can be exported only as CSV or JSON Lines. For other formats, use a filter.'
            : undefined
        }
        value={choice.format}
        options={(Object.keys(EXPORT_FORMATS) as ExportFormat[]).map((value) => ({
          value,
          label: EXPORT_FORMATS[value].label,
        }))}
        onChange={(format) => change({ format })}
      />
      <div className={styles.options}>
        <Checkbox
          label="Values"
          isChecked={choice.includeValues}
          onChange={(includeValues) => change({ includeValues })}
        />
        <Checkbox
          label="Only the metadata in the table"
          isChecked={choice.format === 'csv' || (isText && choice.isShownOnly)}
          disabled={choice.format !== 'ndjson'}
          onChange={(isShownOnly) => change({ isShownOnly })}
        />
      </div>
      <p className={styles.note}>Rows are in insertion order.</p>
      <p className={styles.note} role="status">
        {progress}
      </p>
      {error !== undefined && <ErrorMessage error={error} />}
      <DialogActions>
        <Button onClick={isBusy ? stop : onClose}>{isBusy ? 'Stop' : 'Close'}</Button>
        <Button type="submit" kind="primary" isBusy={isBusy} disabled={isTooLong}>
          Export
        </Button>
      </DialogActions>
    </form>
  );
}

function useExport(props: ExportDialogProps, choice: Choice) {
  const [progress, setProgress] = useState('');
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const request = useRef<AbortController>(undefined);
  useEffect(() => () => request.current?.abort(), []);

  const run = async () => {
    const { mediaType, extension } = EXPORT_FORMATS[choice.format];
    const controller = new AbortController();
    request.current = controller;
    setError(undefined);
    setBusy(true);
    try {
      const sink = await openFileSink(`${props.collection.id}.${extension}`, mediaType);
      if (sink === undefined) return;
      let byteCount = 0;
      try {
        for await (const chunk of readExport(props, choice, controller.signal)) {
          byteCount += chunk.byteLength;
          await sink.write(chunk);
          setProgress(`${formatBytes(byteCount)} written`);
        }
        await sink.close();
      } catch (cause) {
        await sink.abort();
        throw cause;
      }
      notify(`Exported ${formatBytes(byteCount)}.`);
      props.onClose();
    } catch (cause) {
      setProgress('');
      if (!controller.signal.aborted) setError(cause);
    } finally {
      setBusy(false);
    }
  };
  return { progress, error, isBusy, run, stop: () => request.current?.abort() };
}

/** The contents of the file, in chunks. */
async function* readExport(
  { collection, filter, paths, selectedIds }: ExportDialogProps,
  { format, isSelection, includeValues, isShownOnly }: Choice,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const vectors = session.get().client.collection(collection.id);
  const wanted = isSelection ? filterOfIds(selectedIds) : filter;
  const options = { includeValues, signal, ...(wanted !== undefined && { filter: wanted }) };
  const isCut = format === 'csv' || (format === 'ndjson' && isShownOnly);
  if (isCut || (isSelection && wanted === undefined)) {
    const rows = isSelection
      ? fetchByIds(vectors, selectedIds, { include_values: includeValues }, { signal })
      : vectors.exportAll(options);
    const all = { format: format as 'csv' | 'ndjson', includeValues };
    const encoder = new TextEncoder();
    for await (const text of exportText(rows, isCut ? { ...all, paths } : all)) {
      yield encoder.encode(text);
    }
  } else {
    const { body } = await vectors.exportStream({ ...options, format });
    yield* body;
  }
}
