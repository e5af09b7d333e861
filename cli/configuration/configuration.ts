/** Determines which configuration a command line refers to: its file, its language and its text. */
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import type { ConfigFormat, ConfigInput } from '../../compiler/dialects/dialect.ts';
import { ReadError } from '../../compiler/source/reader.ts';
import { readConfigurationText } from '../../runtime/compile/disk-reader.ts';
import { quoteWord } from '../command/arguments.ts';
import { type CommandArgument, CommandFailure, type CommandOption, type Invocation } from '../command/command.ts';
import { readStandardInput } from '../command/terminal.ts';

/** The default file names, in the order in which they are tried. */
const DEFAULT_FILE_NAMES: readonly string[] = ['Configfile', 'Compatfile', 'Caddyfile'];

/** The names in {@link DEFAULT_FILE_NAMES} in words, for help texts. */
export const DEFAULT_FILES_TEXT: string = './Configfile, then ./Compatfile, then ./Caddyfile';

/** The option `-c` of commands that take a configuration. */
export const CONFIG_OPTION: CommandOption = {
	name: 'config',
	short: 'c',
	valueName: 'CONFIG',
	offers: 'file',
	summary: 'Configuration file; - reads standard input',
	default: DEFAULT_FILES_TEXT,
};

/** The argument `[PATH]` of commands that take a configuration. It is equivalent to `-c`. */
export const PATH_ARGUMENT: CommandArgument = {
	name: 'PATH',
	summary: 'Configuration file, or the folder that holds it; - reads standard input',
};

/** The option `--adapter` of commands that take a configuration. */
export const ADAPTER_OPTION: CommandOption = {
	name: 'adapter',
	valueName: 'ADAPTER',
	offers: ['configfile', 'compatfile', 'caddyfile', 'json'],
	summary: 'Configuration language, regardless of the file name: configfile, compatfile (or caddyfile) or json',
};

/** The option `--stdin-filename` of commands that check or format a text before it is saved. */
export const STDIN_FILENAME_OPTION: CommandOption = {
	name: 'stdin-filename',
	valueName: 'PATH',
	offers: 'file',
	summary: 'File whose text is on standard input: it gives the language, the name in reports and the folder of imports',
};

/** How the language is derived from the file name, for help texts. */
export const LANGUAGE_RULE =
	'The file name determines the language: *.json is JSON; caddyfile*, compatfile*, *.caddyfile and *.compatfile, ignoring case, are Caddyfiles, also called Compatfiles; everything else is a Configfile. Standard input is JSON if it begins like a JSON object, otherwise a Configfile.';

/** Where a configuration is read from: a file or standard input. */
export type ConfigurationSource =
	| { readonly kind: 'file'; readonly name: string; readonly path: string; readonly format: ConfigFormat }
	| { readonly kind: 'stdin'; readonly format: ConfigFormat | undefined; readonly name?: string };

/**
 * Returns the configuration that `[PATH]`, `-c` and `--adapter` select; undefined if they name none and there is no default
 * file. @throws {@link CommandFailure} if they contradict each other or the folder holds no configuration
 */
export function configurationSource({
	args,
	value,
}: Pick<Invocation, 'args' | 'value'>): ConfigurationSource | undefined {
	const givenFile = givenPath({ args, value });
	const adapter = value('adapter');
	const format = adapter === undefined ? undefined : adapterFormat(adapter);
	const stdinName = value(STDIN_FILENAME_OPTION.name);
	if (givenFile === '-' && stdinName !== undefined) {
		return { kind: 'stdin', format: format ?? formatOfName(stdinName), name: stdinName };
	}
	if (givenFile === '-') return { kind: 'stdin', format };
	if (stdinName !== undefined) {
		throw new CommandFailure('`--stdin-filename` names the text on standard input, which is read if the path is `-`.');
	}
	if (givenFile === '') throw new CommandFailure('The path of the configuration is empty.');
	if (givenFile !== undefined && fileKindOf(givenFile) === 'directory') {
		if (format !== undefined) {
			throw new CommandFailure(`${quoteWord(givenFile)} is a folder; --adapter can only be used with a single file.`);
		}
		const file = defaultFile(givenFile);
		if (file === undefined)
			throw new CommandFailure(`The folder ${quoteWord(givenFile)} contains no Configfile, Compatfile or Caddyfile.`);
		return fileSource(file, undefined);
	}
	const name = givenFile ?? defaultFile('');
	return name === undefined ? undefined : fileSource(name, format);
}

/** Returns the value of `[PATH]` or `-c`. @throws {@link CommandFailure} if both are given */
export function givenPath({ args, value }: Pick<Invocation, 'args' | 'value'>): string | undefined {
	const config = value('config');
	const [argument] = args;
	if (argument !== undefined && config !== undefined) {
		throw new CommandFailure(
			`Both ${quoteWord(argument)} and ${quoteWord(`--config ${config}`)} name a configuration; give only one of them.`,
		);
	}
	return argument ?? config;
}

/** Like {@link configurationSource}, for commands that require a configuration. */
export function requiredSource(invocation: Pick<Invocation, 'args' | 'value'>): ConfigurationSource {
	const source = configurationSource(invocation);
	if (source) return source;
	throw new CommandFailure('There is no Configfile, Compatfile or Caddyfile in the current folder; name a file.');
}

/** Reads a configuration. @throws {@link CommandFailure} if it cannot be read */
export async function readConfiguration(source: ConfigurationSource): Promise<ConfigInput> {
	if (source.kind === 'stdin') {
		const text = await readStandardInput();
		if (source.name === undefined) return { format: source.format ?? guessFormat(text), text, name: '<stdin>' };
		return { format: source.format ?? 'configfile', text, name: source.name, path: path.resolve(source.name) };
	}
	const { name, format, path: absolutePath } = source;
	try {
		return { format, text: readConfigurationText(absolutePath), name, path: absolutePath };
	} catch (error) {
		throw error instanceof ReadError ? unreadableFailure(name, error.code) : error;
	}
}

/** Returns the language that a file name implies. */
export function formatOfName(file: string): ConfigFormat {
	const name = path.basename(file).toLowerCase();
	if (name.endsWith('.json')) return 'json';
	return /^(?:compat|caddy)file|\.(?:compat|caddy)file$/.test(name) ? 'compatfile' : 'configfile';
}

/** Returns the failure for a file that cannot be read. `code` is the system's error code. */
export function unreadableFailure(name: string, code: string): CommandFailure {
	const reasons: { readonly [code: string]: string } = {
		ENOENT: 'there is no such file',
		EACCES: 'permission denied',
		EISDIR: 'it is a folder',
		EFBIG: 'it is larger than 64 MiB',
		ENOTDIR: 'a part of its path is not a folder',
	};
	return new CommandFailure(`${quoteWord(name)} cannot be read: ${reasons[code] ?? code}.`);
}

/**
 * Returns the names of the configuration files in a folder and its subfolders, in lexical order. Hidden folders and node_modules
 * are skipped.
 */
export function configurationsBelow(folder: string): string[] {
	const configurationPaths: string[] = [];
	for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
		const entryPath = path.join(folder, entry.name);
		if (entry.isDirectory()) {
			if (!entry.name.startsWith('.') && entry.name !== 'node_modules')
				configurationPaths.push(...configurationsBelow(entryPath));
		} else if (entry.isFile() && CONFIGURATION_NAME_PATTERN.test(entry.name)) configurationPaths.push(entryPath);
	}
	return configurationPaths;
}

const CONFIGURATION_NAME_PATTERN = /^(?:config|compat|caddy)file(?!.*\.json$)|\.(?:config|compat|caddy)file$/i;

/** Returns the source for a file. Without `format`, its name determines the language. */
export function fileSource(name: string, format?: ConfigFormat): ConfigurationSource {
	return { kind: 'file', name, path: path.resolve(name), format: format ?? formatOfName(name) };
}

/**
 * Returns the path of the file in a folder that has a default name; undefined if there is none. '' stands for the current folder.
 */
export function defaultFile(folder: string): string | undefined {
	return DEFAULT_FILE_NAMES.map(name => path.join(folder, name)).find(file => fileKindOf(file) === 'file');
}

/** Reports whether a path names an existing folder. */
export function isFolder(file: string): boolean {
	return fileKindOf(file) === 'directory';
}

function fileKindOf(file: string): 'file' | 'directory' | undefined {
	const stats = statSync(file, { throwIfNoEntry: false });
	return stats && (stats.isDirectory() ? 'directory' : 'file');
}

function adapterFormat(adapter: string): ConfigFormat {
	if (adapter === 'caddyfile') return 'compatfile';
	if (adapter === 'configfile' || adapter === 'compatfile' || adapter === 'json') return adapter;
	throw new CommandFailure(`${quoteWord(adapter)} is not an adapter; give configfile, compatfile, caddyfile or json.`);
}

/** Guesses the language. A JSON object begins with a brace and a quote, which a Configfile never does. */
function guessFormat(text: string): ConfigFormat {
	return /^\s*\{\s*(?:"|\}\s*$)/.test(text) ? 'json' : 'configfile';
}
