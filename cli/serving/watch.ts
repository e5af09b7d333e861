/** `--watch`: polls the modification times of a configuration and everything that it imports. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { Reader } from '../../compiler/source/reader.ts';
import { parseConfig } from '../../compiler/syntax/parse-config.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';

/** Milliseconds between polls. */
const INTERVAL = 1000;

/** Calls back after each change of the files that a configuration reads. */
export class ConfigurationWatch {
	readonly #timer: NodeJS.Timeout;
	/** The state of each path when it was last polled. */
	#seen: ReadonlyMap<string, string>;

	/** Must be created before the configuration is compiled, so that no later change is missed. */
	constructor(input: ConfigInput, changed: () => void) {
		const seen = looks(filesOf(input));
		// The file may have changed since its text was read. In that case, the first poll reports a change.
		if (input.path !== undefined && textOf(input.path) !== input.text) seen.set(input.path, '');
		this.#seen = seen;
		this.#timer = setInterval(() => {
			const now = looks(this.#seen.keys());
			if ([...now].every(([path, look]) => this.#seen.get(path) === look)) return;
			this.#seen = now;
			changed();
		}, INTERVAL);
	}

	/** Switches to the files of another configuration. Must be called before that configuration is loaded. */
	follow(input: ConfigInput): void {
		const before = this.#seen;
		// Known files keep their last polled state, so that a change since the last poll is not missed.
		this.#seen = new Map([...looks(filesOf(input))].map(([path, look]) => [path, before.get(path) ?? look]));
	}

	close(): void {
		clearInterval(this.#timer);
	}
}

/**
 * Returns every path that the expansion of the configuration asks for, including missing files and the folders of glob
 * patterns: creating a file there is a change.
 */
function filesOf(input: ConfigInput): string[] {
	const paths = new Set(input.path === undefined ? [] : [input.path]);
	if (input.format !== 'json') {
		try {
			parseConfig(input, recording(diskReader(process.cwd()), paths), () => {}, { knownDirectives: new Set() });
		} catch {
			// Loading the configuration will report the error. Until then, the paths requested so far are watched.
		}
	}
	return [...paths];
}

function recording(reader: Reader, paths: Set<string>): Reader {
	const note = (path: string): string => {
		paths.add(resolve(reader.workingDirectory, path));
		return path;
	};
	return {
		workingDirectory: reader.workingDirectory,
		readText: path => reader.readText(note(path)),
		readBytes: path => reader.readBytes(note(path)),
		list: path => reader.list(note(path)),
		kind: path => {
			const kind = reader.kind(path);
			// The modification time of a parent folder changes for unrelated reasons.
			if (kind !== 'directory') note(path);
			return kind;
		},
		env: name => reader.env(name),
	};
}

function textOf(path: string): string | undefined {
	const reader = diskReader(process.cwd());
	try {
		return reader.kind(path) === 'file' ? reader.readText(path) : undefined;
	} catch {
		return undefined;
	}
}

function looks(paths: Iterable<string>): Map<string, string> {
	return new Map([...paths].map(path => [path, look(path)]));
}

/** Returns a fingerprint of a file: its time, size and inode, because an editor may replace a file within one clock tick. */
function look(path: string): string {
	try {
		const { mtimeMs, size, ino } = statSync(path);
		return `${mtimeMs} ${size} ${ino}`;
	} catch {
		return '';
	}
}
