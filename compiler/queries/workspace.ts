/** The configurations of an editor's workspace: their texts, the imports between them, and the results of compiling them. */
import { dirname, join } from 'node:path';
import { UNKNOWN_HOST_FACTS } from '../codegen/placeholders/index.ts';
import type { Plan } from '../codegen/plan/plan.ts';
import { type CompileResult, createCompiler } from '../compiler.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { ConfigInput, Dialect } from '../dialects/dialect.ts';
import { DryRun, type DryRunEnvironment } from '../dry-run/dry-run.ts';
import type { CompilerSession } from '../incremental/compiler-session.ts';
import { lint } from '../lint/lint.ts';
import { LintMemory } from '../lint/lint-memory.ts';
import { SilencingComments } from '../lint/silencing-comments.ts';
import { ReadError, type Reader } from '../source/reader.ts';
import { RecordingReader } from '../source/recording-reader.ts';
import { importPaths } from '../syntax/import-paths.ts';
import { everyLine, parseSyntax, type TextSyntax } from './text-syntax.ts';

/** A text that an editor has open. It replaces the contents of the file on disk. */
export interface OpenText {
	readonly text: string;
	readonly dialect: Dialect;
}

/** The result of checking a configuration. */
export interface CheckedConfiguration {
	/** Findings about the configuration and all files that it imports. */
	readonly diagnostics: readonly Diagnostic[];
	readonly compiled: CompileResult;
	readonly input: ConfigInput;
}

/** Matches the names of configuration files. */
const CONFIGURATION_NAME = /^(?:config|compat|caddy)file(?!.*\.json$)|\.(?:config|compat|caddy)file$/i;
const COMPATFILE_NAME = /^(?:compat|caddy)file|\.(?:compat|caddy)file$/i;

/** Limits of the search for configurations in a workspace: the number of folders, their depth, and the number of configurations. */
const MAX_FOLDERS = 2000;
const MAX_FOLDER_DEPTH = 8;
const MAX_CONFIGURATIONS = 200;

/**
 * The environment of dry runs without access to files, the network or environment variables, so that they are safe while somebody
 * is typing.
 */
export const ISOLATED_DRY_RUN: DryRunEnvironment = { facts: UNKNOWN_HOST_FACTS, lease: () => undefined };

/** The texts and configurations of a workspace. Everything is read through the reader, which decides what may be read. */
export class Workspace {
	readonly #reader: Reader;
	readonly #folders: readonly string[];
	readonly #openTexts = new Map<string, OpenText>();
	readonly #syntaxes = new Map<string, TextSyntax>();
	readonly #sessions = new Map<string, { readonly dialect: Dialect; readonly session: CompilerSession }>();
	readonly #dryRuns = new Map<string, DryRun>();
	readonly #lintMemories = new Map<string, LintMemory>();
	readonly #resultsByPath = new Map<string, CheckedConfiguration>();
	#configurationPaths: readonly string[] | undefined;

	/** `folders` are the absolute paths of the folders in which configurations are searched for. */
	constructor(reader: Reader, folders: readonly string[]) {
		this.#folders = folders;
		this.#reader = { ...overlayReader(reader, this.#openTexts), workingDirectory: reader.workingDirectory };
	}

	/** The files as the editor sees them: an open text replaces the file on disk. */
	get reader(): Reader {
		return this.#reader;
	}

	setOpenText(path: string, text: OpenText): void {
		this.#openTexts.set(path, text);
	}

	/** Closes a file. Its contents on disk are used from now on. */
	closeText(path: string): void {
		this.#openTexts.delete(path);
		this.#syntaxes.delete(path);
		this.#sessions.delete(path);
		this.#resultsByPath.delete(path);
		this.#dryRuns.delete(path);
		this.#lintMemories.delete(path);
	}

	/** Forgets which configurations exist. Must be called after files have been created or deleted. */
	forgetFiles(): void {
		this.#configurationPaths = undefined;
	}

	get openPaths(): readonly string[] {
		return [...this.#openTexts.keys()];
	}

	/** Returns the syntax of a file; undefined if it cannot be read. An unchanged text is parsed only once. */
	syntaxOf(path: string, dialect: Dialect = this.dialectOf(path)): TextSyntax | undefined {
		const text = this.#openTexts.get(path)?.text ?? this.#readText(path);
		if (text === undefined) return undefined;
		const cachedSyntax = this.#syntaxes.get(path);
		if (cachedSyntax?.text === text && cachedSyntax.dialect === dialect) return cachedSyntax;
		const syntax = parseSyntax(path, text, dialect);
		this.#syntaxes.set(path, syntax);
		return syntax;
	}

	/** Returns the dialect of a configuration that imports a file or, if there is none, the dialect of the file itself. */
	dialectOf(path: string): Dialect {
		const [root] = this.rootsOf(path);
		return this.#ownDialect(root ?? path);
	}

	#ownDialect(path: string): Dialect {
		const openText = this.#openTexts.get(path);
		if (openText) return openText.dialect;
		return COMPATFILE_NAME.test(path.slice(path.lastIndexOf('/') + 1)) ? 'compatfile' : 'configfile';
	}

	/** Returns the outermost configurations that import a file, directly or not. If there are none, returns the file itself. */
	rootsOf(path: string): readonly string[] {
		const roots = this.#findConfigurations().filter(root => root !== path && this.filesOf(root).includes(path));
		const outermostRoots = roots.filter(
			root => !roots.some(other => other !== root && this.filesOf(other).includes(root)),
		);
		return outermostRoots.length > 0 ? outermostRoots : [path];
	}

	/** Returns a configuration and the files that it imports, directly or not. */
	filesOf(mainPath: string): readonly string[] {
		const dialect = this.#ownDialect(mainPath);
		const files = new Set([mainPath]);
		for (const path of files) for (const imported of this.#importsOf(path, dialect)) files.add(imported);
		return [...files];
	}

	/** Returns the files that belong to the same configurations as a file. */
	relatedFiles(path: string): readonly string[] {
		return [...new Set(this.rootsOf(path).flatMap(root => this.filesOf(root)))];
	}

	/** Returns the configurations of the workspace, the open texts, and all files that they import. */
	everyFile(): readonly string[] {
		return [...new Set(this.#findConfigurations().flatMap(root => this.filesOf(root)))];
	}

	/** Returns the configurations that were found in the folders, and the open texts. */
	#findConfigurations(): readonly string[] {
		this.#configurationPaths ??= this.#searchConfigurations();
		return [...new Set([...this.#configurationPaths, ...this.#openTexts.keys()])];
	}

	#searchConfigurations(): readonly string[] {
		const configurations: string[] = [];
		const folders = this.#folders.map(folder => ({ folder, depth: 0 }));
		for (let index = 0; index < folders.length && index < MAX_FOLDERS; index++) {
			const { folder, depth } = folders[index]!;
			for (const name of this.#listFolder(folder)) {
				const path = join(folder, name);
				if (CONFIGURATION_NAME.test(name) && this.#reader.kind(path) === 'file') configurations.push(path);
				else if (
					depth < MAX_FOLDER_DEPTH &&
					!name.startsWith('.') &&
					name !== 'node_modules' &&
					!/\.\w{1,4}$/.test(name)
				) {
					if (this.#reader.kind(path) === 'directory') folders.push({ folder: path, depth: depth + 1 });
				}
				if (configurations.length >= MAX_CONFIGURATIONS) return configurations;
			}
		}
		return configurations;
	}

	/** Returns the files that a file imports directly. */
	#importsOf(path: string, dialect: Dialect): readonly string[] {
		const syntax = this.#syntaxAs(path, dialect);
		return syntax ? importedNames(syntax).flatMap(name => this.filesOfImport(name, path)) : [];
	}

	#syntaxAs(path: string, dialect: Dialect): TextSyntax | undefined {
		return this.syntaxOf(path, this.#openTexts.get(path)?.dialect ?? dialect);
	}

	/** Returns the files that `import pattern` names in a file, without files that may not be read. */
	filesOfImport(pattern: string, path: string): readonly string[] {
		if (/[{}]/.test(pattern)) return [];
		const { files } = importPaths(pattern, dirname(path), path, [], this.#reader);
		return files.map(file => file.path).filter(file => this.#reader.kind(file) === 'file');
	}

	#listFolder(folder: string): readonly string[] {
		try {
			return this.#reader.list(folder);
		} catch (error) {
			if (error instanceof ReadError) return [];
			throw error;
		}
	}

	#readText(path: string): string | undefined {
		try {
			return this.#reader.readText(path);
		} catch (error) {
			if (error instanceof ReadError) return undefined;
			throw error;
		}
	}

	/** Returns the input for compiling a configuration; undefined if the file cannot be read. */
	inputOf(mainPath: string): ConfigInput | undefined {
		const text = this.#openTexts.get(mainPath)?.text ?? this.#readText(mainPath);
		if (text === undefined) return undefined;
		return { format: this.#ownDialect(mainPath), text, name: mainPath, path: mainPath };
	}

	/**
	 * Returns the last result of checking a configuration. The spans in earlier results are no longer valid, because they refer to
	 * earlier texts.
	 */
	lastResultOf(mainPath: string): CheckedConfiguration | undefined {
		return this.#resultsByPath.get(mainPath);
	}

	/** Compiles a configuration, and reuses the results for unchanged parts. Returns undefined if the file cannot be read. */
	#compile(mainPath: string): { readonly compiled: CompileResult; readonly input: ConfigInput } | undefined {
		const input = this.inputOf(mainPath);
		if (!input) return undefined;
		const dialect = input.format as Dialect;
		let sessionEntry = this.#sessions.get(mainPath);
		if (sessionEntry?.dialect !== dialect) {
			sessionEntry = { dialect, session: createCompiler(this.#reader) };
			this.#sessions.set(mainPath, sessionEntry);
			this.#lintMemories.set(mainPath, new LintMemory());
		}
		return { input, compiled: sessionEntry.session.compile(input) };
	}

	/** Compiles and lints a configuration as `svc validate --lint` does, but runs no tests and checks nothing on the machine. */
	async check(mainPath: string): Promise<CheckedConfiguration | undefined> {
		const result = this.#compile(mainPath);
		if (!result) return undefined;
		const { compiled, input } = result;
		const { document, plan, diagnostics } = compiled;
		if (!document || !plan) {
			const silencingComments = new SilencingComments(input.format as Dialect);
			return this.#storeResult(mainPath, { compiled, input, diagnostics: silencingComments.filter(diagnostics) });
		}
		const compiledForLint = { ...compiled, document, plan };
		const dryRunFor = (nextPlan: Plan): DryRun => {
			const dryRun = new DryRun(nextPlan, ISOLATED_DRY_RUN, undefined, this.#dryRuns.get(mainPath));
			dryRun.reset();
			this.#dryRuns.set(mainPath, dryRun);
			return dryRun;
		};
		// Reads are cached, because several rules read the same files.
		const reader = new RecordingReader(this.#reader);
		const memory = this.#lintMemories.get(mainPath)!;
		const findings = await lint({
			input,
			compiled: compiledForLint,
			reader,
			deps: ISOLATED_DRY_RUN,
			dryRunFor,
			memory,
		});
		return this.#storeResult(mainPath, { compiled, input, diagnostics: findings });
	}

	#storeResult(mainPath: string, result: CheckedConfiguration): CheckedConfiguration {
		this.#resultsByPath.set(mainPath, result);
		return result;
	}
}

const importsBySyntax = new WeakMap<TextSyntax, readonly string[]>();

/** Returns the arguments of the imports in a text, as written. */
function importedNames(syntax: TextSyntax): readonly string[] {
	let names = importsBySyntax.get(syntax);
	if (!names) {
		names = [...everyLine(syntax.lines)].flatMap(({ line: { words } }) => {
			const [keyword, target] = words;
			return keyword?.text === 'import' && keyword.quote === 'none' && target && target.text !== ''
				? [target.text]
				: [];
		});
		importsBySyntax.set(syntax, names);
	}
	return names;
}

/** Returns a reader for which open texts replace the files on disk. */
function overlayReader(reader: Reader, openTexts: ReadonlyMap<string, OpenText>): Reader {
	return {
		workingDirectory: reader.workingDirectory,
		readText: path => openTexts.get(path)?.text ?? reader.readText(path),
		readBytes: path => {
			const text = openTexts.get(path)?.text;
			return text === undefined ? reader.readBytes(path) : Buffer.from(text);
		},
		list: path => reader.list(path),
		kind: path => (openTexts.has(path) ? 'file' : reader.kind(path)),
		env: name => reader.env(name),
	};
}
