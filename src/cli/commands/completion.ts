// `sagitta completion`: scripts for bash, zsh and fish, made from the commands and options as they
// are, so that they cannot tell of others. A script is fixed text: completing starts no process.

import { Argument, type Command, type Option } from 'commander';
import { EXIT_CODES_TEXT } from '../failure.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

const EXAMPLES = `
Examples:
  $ source <(sagitta completion bash)               in this shell
  $ sagitta completion bash > ~/.local/share/bash-completion/completions/sagitta
  $ source <(sagitta completion zsh)                in ~/.zshrc, after compinit
  $ sagitta completion fish > ~/.config/fish/completions/sagitta.fish

${EXIT_CODES_TEXT}`;

export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'whose script').choices(SHELLS))
    .addHelpText('after', EXAMPLES)
    .action((shell: Shell) => {
      process.stdout.write(SCRIPTS[shell](listCommands(program)));
    });
}

interface CommandWords {
  /** Below `sagitta`: empty, `query`, `collections list`. */
  readonly path: string;
  readonly description: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionWords[];
  /** The values of the first argument, where they are few. */
  readonly values: readonly string[];
}

interface OptionWords {
  readonly flags: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly values: readonly string[];
}

/** The program itself first. */
export function listCommands(program: Command, path = ''): CommandWords[] {
  const children = program.commands.filter((command) => command.name() !== 'help');
  const help: OptionWords = {
    flags: ['-h', '--help'],
    description: 'display help for command',
    takesValue: false,
    values: [],
  };
  return [
    {
      path,
      description: program.description(),
      commands: children.map((command) => ({
        name: command.name(),
        description: command.description(),
      })),
      options: [...program.options.filter(({ hidden }) => !hidden).map(wordsOf), help],
      values: program.registeredArguments[0]?.argChoices ?? [],
    },
    ...children.flatMap((command) => listCommands(command, `${path} ${command.name()}`.trim())),
  ];
}

function wordsOf(option: Option): OptionWords {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined && flag !== null),
    description: option.description,
    takesValue: option.required || option.optional,
    values: option.argChoices ?? [],
  };
}

const SCRIPTS: Readonly<Record<Shell, (commands: readonly CommandWords[]) => string>> = {
  bash: bashScript,
  zsh: (commands) => `autoload -Uz bashcompinit && bashcompinit\n${bashScript(commands)}`,
  fish: fishScript,
};

/** Finds the command among the words, then offers its commands, options or the values of an option. */
function bashScript(commands: readonly CommandWords[]): string {
  const cases = commands.map(({ path, commands: children, options, values }) => {
    const words = [...children.map(({ name }) => name), ...values];
    const flags = options.flatMap((option) => option.flags);
    const ofOptions = options
      .filter(({ takesValue }) => takesValue)
      .map((option) => {
        const reply =
          option.values.length === 0 ? "words=''" : `words='${option.values.join(' ')}'`;
        return `        ${option.flags.join('|')}) ${reply}; flags='' ;;`;
      });
    return `    '${path}')
      words='${words.join(' ')}' flags='${flags.join(' ')}'
      case "$previous" in
${ofOptions.join('\n')}
      esac ;;`;
  });
  const withValue = new Set(
    commands.flatMap(({ options }) =>
      options.filter(({ takesValue }) => takesValue).flatMap(({ flags }) => flags),
    ),
  );
  return `# Completes sagitta in bash; made by: sagitta completion bash
_sagitta() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local path='' words='' flags='' at word
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="\${COMP_WORDS[at]}"
    case "$word" in
      ${[...withValue].join('|')}) ((at++)) ;;
      -*) ;;
      *)
        case "$path $word" in
          ${commands
            .slice(1)
            .map(({ path }) => `' ${path}'|'${path}'`)
            .join('|')}) path="\${path:+$path }$word" ;;
        esac ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif [[ -n "$words" ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _sagitta sagitta
`;
}

function fishScript(commands: readonly CommandWords[]): string {
  const lines = ['# Completes sagitta in fish; made by: sagitta completion fish'];
  for (const { path, commands: children, options, values } of commands) {
    const condition = path === '' ? '__fish_use_subcommand' : conditionOf(path, children);
    const start = `complete -c sagitta -n ${quote(condition)}`;
    for (const { name, description } of children) {
      lines.push(`${start} -f -a ${name} -d ${quote(description)}`);
    }
    if (values.length > 0) lines.push(`${start} -f -a ${quote(values.join(' '))}`);
    for (const { flags, description, takesValue, values: choices } of options) {
      const names = flags.map((flag) =>
        flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
      );
      const value = !takesValue
        ? ''
        : choices.length === 0
          ? ' -r'
          : ` -x -a ${quote(choices.join(' '))}`;
      lines.push(`${start} ${names.join(' ')}${value} -d ${quote(description)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function conditionOf(path: string, children: CommandWords['commands']): string {
  const [parent, child] = path.split(' ');
  if (child !== undefined) {
    return `__fish_seen_subcommand_from ${parent}; and __fish_seen_subcommand_from ${child}`;
  }
  const names = children.map(({ name }) => name).join(' ');
  const isLast = names === '' ? '' : `; and not __fish_seen_subcommand_from ${names}`;
  return `__fish_seen_subcommand_from ${parent}${isLast}`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
