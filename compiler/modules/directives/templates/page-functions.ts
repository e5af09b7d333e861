/** Functions for pages, in addition to the built-in functions and the functions of sprig. */
import { withBufferedBody } from '../../../codegen/context/request-body.ts';
import { isStream } from '../../../exchange/body.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { formatValue, valueToText } from '../../templates/format-value.ts';
import { callChecked, defineFunction, type FunctionList } from '../../templates/function.ts';
import type { TemplateRun } from '../../templates/run.ts';
import { FunctionError, Suspension, TemplateFailure } from '../../templates/template-error.ts';
import { addTemplates, executeTextTemplate } from '../../templates/text-template.ts';
import { objectMethod, TimeValue } from '../../templates/time-value.ts';
import type { Dictionary, TemplateObject, Value } from '../../templates/value.ts';
import { pageFilePath, pageHostOf } from './page-host.ts';
import { humanize, pathEscape, splitFrontMatter, stripHtml } from './page-texts.ts';
import { requestFromSite, type SubResponse } from './sub-request.ts';

const placeholderFunction = defineFunction('string', (run, name: string) => {
	const host = pageHostOf(run);
	const template = host.stepState.placeholder(name);
	if (template === undefined) return '';
	if (name.startsWith('http.request.body') && isStream(host.x.request.body)) {
		throw new Suspension(Promise.resolve(withBufferedBody(() => {})(host.x)));
	}
	return template.render(host.x);
});

/** The functions for files, requests, text formats and the response. */
export const PAGE_FUNCTIONS: FunctionList = {
	include: defineFunction('string any...', (run, file: string, args: Value[]) => {
		const host = pageHostOf(run);
		const template = host.stepState.compile({ text: host.readText(run, file) }, file);
		return executeTextTemplate(template, {
			name: file,
			data: host.data.withArgs(args),
			budget: run.budget,
			deps: run.deps,
		});
	}),
	import: defineFunction('string', (run, file: string) => {
		const host = pageHostOf(run);
		addTemplates(run, host.stepState.compile({ text: host.readText(run, file) }, file), file);
		return '';
	}),
	readFile: defineFunction('string', (run, file: string) => pageHostOf(run).readText(run, file)),
	httpInclude: defineFunction('string', httpInclude),
	listFiles: defineFunction('string', (run, folder: string) => {
		const { stepState: site, root } = pageHostOf(run);
		const path = pageFilePath(folder);
		run.budget.spendSteps(100);
		const folderStats = site.reader.stat(root, path, false);
		if (!folderStats) return run.fail(`${folder}: there is no such folder`);
		if (folderStats.type !== 'directory') return run.fail(`${folder} is not a directory`);
		return site.reader.list(root, path, false);
	}),
	fileExists: defineFunction('string', (run, file: string) => {
		const { stepState: site, root } = pageHostOf(run);
		run.budget.spendSteps(20);
		return site.reader.stat(root, pageFilePath(file), false) !== undefined;
	}),
	fileStat: defineFunction('string', (run, file: string) => {
		const { stepState: site, root } = pageHostOf(run);
		run.budget.spendSteps(20);
		const fileStats = site.reader.stat(root, pageFilePath(file), false);
		if (!fileStats) return run.fail(`${file}: there is no such file`);
		const name = file.split('/').findLast(segment => segment !== '') ?? '';
		return new FileInfo(
			name,
			fileStats.type === 'directory',
			BigInt(fileStats.size),
			Number(fileStats.mtimeNs / 1_000_000n),
		);
	}),
	env: defineFunction('string', (run, name: string) => readEnvironment(run, name)),
	expandenv: defineFunction('string', (run, text: string) =>
		text.replace(/\$(?:\{(\w+)\}|(\w+))/g, (_, bracedName?: string, plainName?: string) =>
			readEnvironment(run, bracedName ?? plainName!),
		),
	),
	placeholder: placeholderFunction,
	ph: placeholderFunction,
	markdown: defineFunction('any', (run, text: Value) => {
		const source = valueToText(run, text);
		run.budget.spendSteps(source.length);
		const html = pageHostOf(run).stepState.formats.markdown(source);
		run.budget.chargeText(html.length);
		return html;
	}),
	stripHTML: defineFunction('string', (_, html: string) => stripHtml(html)),
	splitFrontMatter: defineFunction('string', (run, text: string) => {
		run.budget.spendSteps(text.length >> 5);
		const { meta, body } = splitFrontMatter(text, pageHostOf(run).stepState.formats);
		return new SplitDocument(run, meta, body);
	}),
	httpError: defineFunction('int', (run, status: bigint) => {
		if (status < 100n || status > 599n) return run.fail(`${status} is not a status`);
		throw new HttpError(Number(status), 'a template asked for this status');
	}),
	humanize: defineFunction('string any', (run, format: string, data: Value) =>
		humanize(format, valueToText(run, data), run.deps.now()),
	),
	pathEscape: defineFunction('string', (_, text: string) => pathEscape(text)),
	maybe: defineFunction('string any...', (run, name: string, args: Value[]) => {
		const namedFunction = pageHostOf(run).stepState.functions.get(name);
		return namedFunction ? callChecked(run, name, namedFunction, args) : '';
	}),
};

function readEnvironment(run: TemplateRun, name: string): string {
	const template = pageHostOf(run).stepState.placeholder(`env.${name}`);
	return template === undefined ? '' : template.render(pageHostOf(run).x);
}

/**
 * Returns the body of the site's response to another request, as data. If a page requests the same URI again, the first response is
 * used.
 */
function httpInclude(run: TemplateRun, uri: string): string {
	const host = pageHostOf(run);
	run.budget.spendSteps(200);
	const earlierAnswer = host.responsesByUri.get(uri);
	const answer = earlierAnswer ?? requestFromSite(host.x, host.allowance, host.stepState.wholeSite, uri);
	if (answer instanceof Promise) {
		throw new Suspension(answer.then((loadedAnswer: SubResponse) => host.responsesByUri.set(uri, loadedAnswer)));
	}
	if (!earlierAnswer) host.responsesByUri.set(uri, answer);
	if ('failure' in answer) throw new FunctionError(answer.failure);
	return answer.text;
}

/** The result of `fileStat`. */
class FileInfo implements TemplateObject {
	readonly typeName = 'fs.FileInfo';
	readonly #name: string;
	readonly #isDirectory: boolean;
	readonly #size: bigint;
	readonly #modifiedMs: number;

	constructor(name: string, isDirectory: boolean, size: bigint, modifiedMs: number) {
		this.#name = name;
		this.#isDirectory = isDirectory;
		this.#size = size;
		this.#modifiedMs = modifiedMs;
	}

	member(name: string): Value | undefined {
		switch (name) {
			case 'Name':
				return objectMethod(name, '', () => this.#name);
			case 'Size':
				return objectMethod(name, '', () => this.#size);
			case 'IsDir':
				return objectMethod(name, '', () => this.#isDirectory);
			case 'ModTime':
				return objectMethod(name, '', () => new TimeValue(this.#modifiedMs, 'Local'));
			default:
				return undefined;
		}
	}

	text(): string {
		return this.#name;
	}
}

/** The result of `splitFrontMatter`. */
class SplitDocument implements TemplateObject {
	readonly typeName = 'templates.parsedMarkdownDoc';
	readonly #run: TemplateRun;
	readonly #meta: Dictionary;
	readonly #body: string;

	constructor(run: TemplateRun, meta: Dictionary, body: string) {
		this.#run = run;
		this.#meta = meta;
		this.#body = body;
	}

	member(name: string): Value | undefined {
		return name === 'Meta' ? this.#meta : name === 'Body' ? this.#body : undefined;
	}

	jsonFields(): Dictionary {
		return new Map<string, Value>([
			['meta', this.#meta],
			['body', this.#body],
		]);
	}

	text(): string {
		return `{${formatValue(this.#run, this.#meta)} ${this.#body}}`;
	}
}

/** Converts an error from the execution of a page: the template's own mistakes become HttpError 500. */
export function toPageError(error: unknown): unknown {
	if (error instanceof TemplateFailure) return new HttpError(500, error.message, { cause: error });
	return error;
}
