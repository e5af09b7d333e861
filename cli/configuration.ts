/** Which configuration a command line means: the file, its language, its text. */
import { statSync } from 'node:fs';
import path from 'node:path';
import type { ConfigFormat, ConfigInput } from '../compiler/dialects/dialect.ts';
import { ReadError } from '../compiler/source/reader.ts';
import { readConfigurationText } from '../runtime/compile/disk-reader.ts';
import { quoted } from './arguments.ts';
import { type CommandArgument, CommandFailure, type CommandOption, type Invocation } from './command.ts';
import { readStandardInput } from './terminal.ts';

/** Names looked for where none is given, in this order. */
const DEFAULT_FILES: readonly string[] = ['Configfile', 'Compatfile', 'Caddyfile'];

/** The same for help texts. */
export const DEFAULT_PLACES: string = './Configfile, then ./Compatfile, then ./Caddyfile';

/** `-c`, as commands with a configuration take it. */
export const CONFIG_OPTION: CommandOption = {
	name: 'config',
	short: 'c',
	value: 'CONFIG',
	offers: 'file',
	summary: 'Configuration file; - reads standard input',
	default: DEFAULT_PLACES,
};

/** `[PATH]`, as commands with a configuration take it: the same as `-c`. */
export const PATH_ARGUMENT: CommandArgument = {
	name: 'PATH',
	summary: 'Configuration file, or the folder that holds it; - reads standard input',
};

/** `--adapter`, as commands with a configuration take it. */
export const ADAPTER_OPTION: CommandOption = {
	name: 'adapter',
	value: 'ADAPTER',
	offers: ['configfile', 'compatfile', 'caddyfile', 'json'],
	summary: 'Language of the configuration, whatever its name says: configfile, compatfile (also caddyfile) or json',
};

/** How the language follows from the name, for help texts. */
export const LANGUAGE_RULE =
	'The name tells the language: *.json is JSON; caddyfile*, compatfile*, *.caddyfile and *.compatfile, in any letter case, are Caddyfiles, also called Compatfiles; everything else is a Configfile. Standard input is JSON when it begins as a JSON object, else a Configfile.';

/** Where a configuration comes from. */
export type ConfigurationSource =
	| { readonly kind: 'file'; readonly name: string; readonly path: string; readonly format: ConfigFormat }
	| { readonly kind: 'stdin'; readonly format: ConfigFormat | undefined };

/**
 * The configuration that `[PATH]`, `-c` and `--adapter` name; undefined when they name none and there is no default
 * file. Throws {@link CommandFailure} when they contradict each other or name nothing.
 */
export function configurationSource({
	args,
	value,
}: Pick<Invocation, 'args' | 'value'>): ConfigurationSource | undefined {
	const given = givenPath({ args, value });
	const adapter = value('adapter');
	const format = adapter === undefined ? undefined : adapterFormat(adapter);
	if (given === '-') return { kind: 'stdin', format };
	if (given === '') throw new CommandFailure('The path of the configuration is empty.');
	if (given !== undefined && kindOf(given) === 'directory') {
		if (format !== undefined) {
			throw new CommandFailure(`${quoted(given)} is a folder; an explicit --adapter takes a single file.`);
		}
		const found = defaultFile(given);
		if (found === undefined)
			throw new CommandFailure(`The folder ${quoted(given)} holds no Configfile, Compatfile or Caddyfile.`);
		return fileSource(found, undefined);
	}
	const name = given ?? defaultFile('');
	return name === undefined ? undefined : fileSource(name, format);
}

/** What `[PATH]` or `-c` says. Throws {@link CommandFailure} when both say something. */
export function givenPath({ args, value }: Pick<Invocation, 'args' | 'value'>): string | undefined {
	const config = value('config');
	const [argument] = args;
	if (argument !== undefined && config !== undefined) {
		throw new CommandFailure(
			`Both ${quoted(argument)} and ${quoted(`--config ${config}`)} name a configuration; give one of them.`,
		);
	}
	return argument ?? config;
}

/** As {@link configurationSource}, for commands that do nothing without a configuration. */
export function requiredSource(invocation: Pick<Invocation, 'args' | 'value'>): ConfigurationSource {
	const source = configurationSource(invocation);
	if (source) return source;
	throw new CommandFailure('There is no Configfile, Compatfile or Caddyfile in this folder; name the file.');
}

/** Reads a configuration. Throws {@link CommandFailure} when it cannot be read. */
export async function readConfiguration(source: ConfigurationSource): Promise<ConfigInput> {
	if (source.kind === 'stdin') {
		const text = await readStandardInput();
		return { format: source.format ?? guessFormat(text), text, name: '<stdin>' };
	}
	const { name, format, path: absolute } = source;
	try {
		return { format, text: readConfigurationText(absolute), name, path: absolute };
	} catch (error) {
		throw error instanceof ReadError ? unreadable(name, error.code) : error;
	}
}

/** The language that a file's name implies. */
export function formatOfName(file: string): ConfigFormat {
	const name = path.basename(file).toLowerCase();
	if (name.endsWith('.json')) return 'json';
	return /^(?:compat|caddy)file|\.(?:compat|caddy)file$/.test(name) ? 'compatfile' : 'configfile';
}

/** The sentence for a file that cannot be read; `code` is the system's. */
export function unreadable(name: string, code: string): CommandFailure {
	const reasons: { readonly [code: string]: string } = {
		ENOENT: 'there is no such file',
		EACCES: 'permission denied',
		EISDIR: 'it is a folder',
		EFBIG: 'it is larger than 64 MiB',
		ENOTDIR: 'a part of its path is no folder',
	};
	return new CommandFailure(`${quoted(name)} cannot be read: ${reasons[code] ?? code}.`);
}

function fileSource(name: string, format: ConfigFormat | undefined): ConfigurationSource {
	return { kind: 'file', name, path: path.resolve(name), format: format ?? formatOfName(name) };
}

function defaultFile(folder: string): string | undefined {
	return DEFAULT_FILES.map(name => path.join(folder, name)).find(file => kindOf(file) === 'file');
}

function kindOf(file: string): 'file' | 'directory' | undefined {
	const found = statSync(file, { throwIfNoEntry: false });
	return found && (found.isDirectory() ? 'directory' : 'file');
}

function adapterFormat(adapter: string): ConfigFormat {
	if (adapter === 'caddyfile') return 'compatfile';
	if (adapter === 'configfile' || adapter === 'compatfile' || adapter === 'json') return adapter;
	throw new CommandFailure(`${quoted(adapter)} is not an adapter; give configfile, compatfile, caddyfile or json.`);
}

/** A JSON object opens with a brace and a quote; a text that is a Configfile never does. */
function guessFormat(text: string): ConfigFormat {
	return /^\s*\{\s*(?:"|\}\s*$)/.test(text) ? 'json' : 'configfile';
}
