/** Test helpers for the compatible language: compile a configuration, and return its errors, document and responses. */
import { type CompileResult, compile } from '../../../compiler/compiler.ts';
import type { ConfigFormat } from '../../../compiler/dialects/dialect.ts';
import { DryRun, type DryRunResult } from '../../../compiler/dry-run/dry-run.ts';
import { isRequestUrl, parseRequestUrl } from '../../../compiler/dry-run/dry-run-request.ts';
import { printedForm } from '../../../compiler/schema/printed-form.ts';
import type { Reader } from '../../../compiler/source/reader.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';
import { dryRunEnvironment } from '../../../runtime/compile/dry-run-environment.ts';
import { memoryReader } from '../syntax/memory-config.ts';

const FOLDER = '/config';

/** Compiles configuration text as `/config/Compatfile` (or `Configfile`), next to `files`. */
export function compileText(
	text: string,
	files: { readonly [name: string]: string } = {},
	format: ConfigFormat = 'compatfile',
	env: { readonly [name: string]: string } = {},
): CompileResult {
	const name = format === 'compatfile' ? 'Compatfile' : 'Configfile';
	const reader = memoryReader({ main: '', ...files }, env);
	return compile({ format, text, name, path: `${FOLDER}/${name}` }, reader);
}

/** Returns the message and the hint of each error of a compilation. */
export function errors(found: CompileResult): string[] {
	return found.diagnostics
		.filter(({ severity }) => severity === 'error')
		.map(({ message, hint }) => (hint === undefined ? message : `${message}\n${hint}`));
}

export function warnings(found: CompileResult): string[] {
	return found.diagnostics.filter(({ severity }) => severity === 'warning').map(({ message }) => message);
}

/** Returns the printed form of the document compiled from a text. Throws if the text has errors. */
export function compileToDocument(
	text: string,
	files: { readonly [name: string]: string } = {},
	format: ConfigFormat = 'compatfile',
): { readonly [key: string]: unknown } {
	const result = compileText(text, files, format);
	if (!result.document) throw new Error(`${text}\n${errors(result).join('\n')}`);
	return printedForm(result.document) as { readonly [key: string]: unknown };
}

/** The properties in which a request differs from a `GET` without header fields and body. */
export interface DryRunQuery {
	readonly method?: string;
	readonly headers?: { readonly [name: string]: string } | readonly (readonly [string, string])[];
	readonly body?: string;
	readonly from?: string;
	/** The time of the request, in milliseconds since 1970. */
	readonly at?: number;
}

/** A response, and the result of the dry run that produced it. */
export interface DryRunResponse {
	readonly seen: DryRunResult;
	readonly status: number;
	readonly body: string;
	readonly header: (name: string) => string | undefined;
}

/** Serves the requests of one configuration without a socket. */
export class DryRunServer {
	readonly #dryRun: DryRun;

	constructor(text: string, options: { folder?: string; format?: ConfigFormat; reader?: Reader } = {}) {
		const { folder = '/', format = 'compatfile' } = options;
		const reader = options.reader ?? diskReader(folder);
		const result = compile({ format, text, name: 'Compatfile', path: `${folder}/Compatfile` }, reader);
		if (!result.plan) throw new Error(`${text}\n${errors(result).join('\n')}`);
		this.#dryRun = new DryRun(result.plan, dryRunEnvironment(folder));
	}

	/** Requests an absolute URL. Throws if no listener matches the URL. */
	async ask(text: string, { method = 'GET', headers = {}, body, from, at }: DryRunQuery = {}): Promise<DryRunResponse> {
		const url = parseRequestUrl(text);
		if (!isRequestUrl(url)) throw new Error(url.message);
		const fields = Array.isArray(headers) ? headers : Object.entries(headers);
		const seen = await this.#dryRun.run({ method, url, headers: fields, body, from, at });
		if (!seen) throw new Error(`no listener matches ${text}`);
		const response = seen.response;
		return {
			seen,
			status: response?.status ?? 0,
			body: response ? Buffer.from(await response.bytes()).toString('utf8') : '',
			header: name => response?.headers.get(name),
		};
	}
}
