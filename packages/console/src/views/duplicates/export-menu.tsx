// The menu that exports results as NDJSON or CSV.

import { Download } from 'lucide-react';
import { useState } from 'react';
import { MenuButton } from '../../ui/menu-button.js';
import { saveFile } from '../../ui/save-file.js';
import { ErrorMessage } from '../../ui/states.js';

const MEDIA_TYPES = { ndjson: 'application/x-ndjson', csv: 'text/csv' };

type ExportFormat = keyof typeof MEDIA_TYPES;

interface ExportMenuProps {
  /** The name of the file, without its extension. */
  readonly name: string;
  readonly labels: Readonly<Record<ExportFormat, string>>;
  readonly disabled?: boolean;
  readonly write: (format: ExportFormat) => Promise<string[]>;
}

export function ExportMenu({ name, labels, disabled = false, write }: ExportMenuProps) {
  const [error, setError] = useState<unknown>();
  const exportAs = async (format: ExportFormat) => {
    setError(undefined);
    try {
      saveFile(`${name}.${format}`, MEDIA_TYPES[format], await write(format));
    } catch (cause) {
      setError(cause);
    }
  };
  return (
    <>
      <MenuButton
        icon={Download}
        disabled={disabled}
        actions={[
          { label: labels.ndjson, onSelect: () => exportAs('ndjson') },
          { label: labels.csv, onSelect: () => exportAs('csv') },
        ]}
      >
        Export
      </MenuButton>
      {error !== undefined && <ErrorMessage error={error} />}
    </>
  );
}
