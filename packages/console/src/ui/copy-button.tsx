// Copies a text to the clipboard and confirms it.

import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Button, IconButton } from './button.js';
import { notify } from './notices.js';

const CONFIRMED_MS = 2_000;

interface CopyButtonProps {
  /** The text to copy, or a function if it is expensive to create. */
  readonly text: string | (() => string);
  readonly label: string;
  /** Whether the label is shown beside the icon. */
  readonly isLabelShown?: boolean;
}

export function CopyButton({ text, label, isLabelShown = false }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), CONFIRMED_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => {
    await copyText(typeof text === 'function' ? text() : text);
    setCopied(true);
    notify('Copied to the clipboard.');
  };
  const icon = isCopied ? Check : Copy;
  return isLabelShown ? (
    <Button icon={icon} onClick={copy}>
      {label}
    </Button>
  ) : (
    <IconButton icon={icon} label={label} onClick={copy} />
  );
}

/** `navigator.clipboard` exists only over HTTPS and on localhost. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}
