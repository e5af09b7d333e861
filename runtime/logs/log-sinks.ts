/** The writers that logs share, counted by who uses them, and opened before the configuration that names them is served. */

import type { LogOutput } from '../../compiler/providers/log-writers/log-output.ts';
import { parseCollectorAddress } from '../../compiler/providers/log-writers/net-output.ts';
import { leaseKey } from '../leases.ts';
import { openLogFile } from './file-writer.ts';
import { giveBack, type PostedLines, segmentBytes } from './log-segment.ts';
import { DescriptorWriter, DISCARD, type LogWriter } from './log-writer.ts';
import type { ExpandText } from './machine-text.ts';
import { DatagramWriter, StreamWriter } from './net-writer.ts';

/** Settings of an output. */
export type LogOutputSettings = LogOutput;

/** Writers that stand in for the process's streams. */
export interface StandardWriters {
	readonly stdout?: LogWriter;
	readonly stderr?: LogWriter;
}

/** An output that cannot be opened; `message` names it. */
export class LogOutputError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'LogOutputError';
	}
}

/** Milliseconds to connect to a collector. */
const DIAL_TIMEOUT = 10_000;

interface Sink {
	readonly output: LogOutputSettings;
	readonly writer: LogWriter;
	users: number;
}

/** Key of an output: logs with equal settings share one writer. */
export function sinkKey(output: LogOutputSettings): string {
	return leaseKey('log', output);
}

/** The log writers of the process. */
export class LogSinks {
	readonly #sinks = new Map<string, Sink>();
	readonly #standard: StandardWriters;
	readonly #workingDirectory: string;
	readonly #expand: ExpandText;
	readonly #closing = new Set<Promise<void>>();

	/** `expand` fills in what paths take from the machine; nothing if left out. */
	constructor(standard: StandardWriters, workingDirectory: string, expand: ExpandText = path => path) {
		this.#standard = standard;
		this.#workingDirectory = workingDirectory;
		this.#expand = expand;
	}

	/** Takes a use of a writer, opening it first. Throws LogOutputError. */
	acquire(output: LogOutputSettings): LogWriter {
		const key = sinkKey(output);
		let sink = this.#sinks.get(key);
		if (!sink) {
			sink = { output, writer: this.#open(output), users: 0 };
			this.#sinks.set(key, sink);
		}
		sink.users++;
		return sink.writer;
	}

	/** Gives a use back; the last one closes the writer once its text is written. */
	release(key: string): void {
		const sink = this.#sinks.get(key);
		if (!sink || --sink.users > 0) return;
		this.#sinks.delete(key);
		const closed = sink.writer.close().finally(() => this.#closing.delete(closed));
		this.#closing.add(closed);
	}

	/** The writer of a key that is in use. */
	get(key: string): LogWriter | undefined {
		return this.#sinks.get(key)?.writer;
	}

	/** Writes lines to the writer of a key, a segment of them is given back; false when they were dropped. */
	write(key: string, lines: PostedLines): boolean {
		const writer = this.#sinks.get(key)?.writer;
		if (typeof lines === 'string') return writer?.write(lines) === true;
		const { memory, length } = lines;
		const bytes = segmentBytes(memory, length);
		if (writer?.writeBytes) return writer.writeBytes(bytes, () => giveBack(memory));
		const taken = writer?.write(bytes.toString()) === true;
		giveBack(memory);
		return taken;
	}

	/** Waits until it is known whether the writers that are in use can write. Rejects with LogOutputError. */
	async opened(): Promise<void> {
		for (const { output, writer } of this.#sinks.values()) {
			try {
				await writer.opened;
			} catch (error) {
				const code = (error as { code?: string }).code ?? 'EIO';
				throw new LogOutputError(`The log collector ${output.address} cannot be reached: ${code}.`);
			}
		}
	}

	/** Waits until everything is written, `limit` milliseconds at most: a stopped reader of a pipe must not hold the process. */
	async flush(limit: number): Promise<void> {
		const flushed = Promise.all([...[...this.#sinks.values()].map(sink => sink.writer.flush()), ...this.#closing]);
		let timer: NodeJS.Timeout | undefined;
		await Promise.race([
			flushed,
			new Promise(resolve => {
				timer = setTimeout(resolve, limit);
			}),
		]);
		clearTimeout(timer);
	}

	#open(output: LogOutputSettings): LogWriter {
		switch (output.writer) {
			case 'stdout':
				return this.#standard.stdout ?? new DescriptorWriter(1, false);
			case 'stderr':
				return this.#standard.stderr ?? new DescriptorWriter(2, false);
			case 'discard':
				return DISCARD;
			case 'file':
				return this.#openFile(output);
			case 'net':
				return this.#openNet(output);
			default:
				throw new LogOutputError(`There is no log output \`${output.writer}\`.`);
		}
	}

	#openFile(output: LogOutputSettings): LogWriter {
		const path = this.#expand(output.path ?? '', placeholder => {
			throw new LogOutputError(`The log file ${output.path} cannot be named: ${placeholder} gives nothing.`);
		});
		if (path === '') throw new LogOutputError('A log file needs a path.');
		try {
			return openLogFile(path, this.#workingDirectory, output);
		} catch (error) {
			const code = (error as { code?: string }).code ?? 'EIO';
			throw new LogOutputError(`The log file ${path} cannot be opened: ${code}.`);
		}
	}

	#openNet(output: LogOutputSettings): LogWriter {
		const text = this.#expand(output.address ?? '', placeholder => {
			throw new LogOutputError(`The log collector ${output.address} cannot be named: ${placeholder} gives nothing.`);
		});
		const address = parseCollectorAddress(text);
		if (!address) throw new LogOutputError(`\`${text}\` is not the address of a log collector.`);
		if (address.network === 'udp') return new DatagramWriter(address);
		const meanwhile = output.soft_start ? this.#open({ writer: 'stderr' }) : undefined;
		return new StreamWriter(address, { timeout: output.dial_timeout ?? DIAL_TIMEOUT, meanwhile });
	}
}
