/** The functions available in pages, in addition to the built-in functions and those of sprig. */
import { withWholeBody } from '../../../codegen/context/request-body.ts';
import { isStream } from '../../../exchange/body.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { formatValue, textOf } from '../../templates/format-value.ts';
import { callChecked, define, type FunctionList } from '../../templates/function.ts';
import type { Run } from '../../templates/run.ts';
import { FunctionError, Suspension, TemplateFailure } from '../../templates/template-error.ts';
import { addTemplates, executeTextTemplate } from '../../templates/text-template.ts';
import { method, TimeValue } from '../../templates/time-value.ts';
import type { Dictionary, TemplateObject, Value } from '../../templates/value.ts';
import { filePath, hostOf } from './page-host.ts';
import { humanize, pathEscape, splitFrontMatter, stripHtml } from './page-texts.ts';
import { type SubResponse, subRequest } from './sub-request.ts';

const placeholder = define('string', (run, name: string) => {
	const host = hostOf(run);
	const template = host.site.placeholder(name);
	if (template === undefined) return '';
	if (name.startsWith('http.request.body') && isStream(host.x.request.body)) {
		throw new Suspension(Promise.resolve(withWholeBody(() => {})(host.x)));
	}
	return template.render(host.x);
});

/** Functions for files, requests, text formats and the response: `include` to `maybe`. */
export const PAGE_FUNCTIONS: FunctionList = {
	include: define('string any...', (run, file: string, args: Value[]) => {
		const host = hostOf(run);
		const template = host.site.compile({ text: host.readText(run, file) }, file);
		return executeTextTemplate(template, {
			name: file,
			data: host.data.withArgs(args),
			budget: run.budget,
			deps: run.deps,
		});
	}),
	import: define('string', (run, file: string) => {
		const host = hostOf(run);
		addTemplates(run, host.site.compile({ text: host.readText(run, file) }, file), file);
		return '';
	}),
	readFile: define('string', (run, file: string) => hostOf(run).readText(run, file)),
	httpInclude: define('string', httpInclude),
	listFiles: define('string', (run, folder: string) => {
		const { site, root } = hostOf(run);
		const path = filePath(folder);
		run.budget.spend(100);
		const facts = site.reader.stat(root, path, false);
		if (!facts) return run.fail(`${folder}: there is no such folder`);
		if (facts.type !== 'directory') return run.fail(`${folder} is not a directory`);
		return site.reader.list(root, path, false);
	}),
	fileExists: define('string', (run, file: string) => {
		const { site, root } = hostOf(run);
		run.budget.spend(20);
		return site.reader.stat(root, filePath(file), false) !== undefined;
	}),
	fileStat: define('string', (run, file: string) => {
		const { site, root } = hostOf(run);
		run.budget.spend(20);
		const facts = site.reader.stat(root, filePath(file), false);
		if (!facts) return run.fail(`${file}: there is no such file`);
		const name = file.split('/').findLast(segment => segment !== '') ?? '';
		return new FileInfo(name, facts.type === 'directory', BigInt(facts.size), Number(facts.mtimeNs / 1_000_000n));
	}),
	env: define('string', (run, name: string) => environment(run, name)),
	expandenv: define('string', (run, text: string) =>
		text.replace(/\$(?:\{(\w+)\}|(\w+))/g, (_, braced?: string, plain?: string) => environment(run, braced ?? plain!)),
	),
	placeholder,
	ph: placeholder,
	markdown: define('any', (run, text: Value) => {
		const source = textOf(run, text);
		run.budget.spend(source.length);
		const html = hostOf(run).site.formats.markdown(source);
		run.budget.text(html.length);
		return html;
	}),
	stripHTML: define('string', (_, html: string) => stripHtml(html)),
	splitFrontMatter: define('string', (run, text: string) => {
		run.budget.spend(text.length >> 5);
		const { meta, body } = splitFrontMatter(text, hostOf(run).site.formats);
		return new SplitDocument(run, meta, body);
	}),
	httpError: define('int', (run, status: bigint) => {
		if (status < 100n || status > 599n) return run.fail(`${status} is not a status`);
		throw new HttpError(Number(status), 'a template asked for this status');
	}),
	humanize: define('string any', (run, format: string, data: Value) =>
		humanize(format, textOf(run, data), run.deps.now()),
	),
	pathEscape: define('string', (_, text: string) => pathEscape(text)),
	maybe: define('string any...', (run, name: string, args: Value[]) => {
		const fn = hostOf(run).site.functions.get(name);
		return fn ? callChecked(run, name, fn, args) : '';
	}),
};

function environment(run: Run, name: string): string {
	const template = hostOf(run).site.placeholder(`env.${name}`);
	return template === undefined ? '' : template.render(hostOf(run).x);
}

/** Returns the body of the site's response to another request, as data. A path requested twice is fetched once. */
function httpInclude(run: Run, uri: string): string {
	const host = hostOf(run);
	run.budget.spend(200);
	const known = host.answers.get(uri);
	const answer = known ?? subRequest(host.x, host.allowance, host.site.wholeSite, uri);
	if (answer instanceof Promise) {
		throw new Suspension(answer.then((later: SubResponse) => host.answers.set(uri, later)));
	}
	if (!known) host.answers.set(uri, answer);
	if ('failure' in answer) throw new FunctionError(answer.failure);
	return answer.text;
}

/** The result of `fileStat`. */
class FileInfo implements TemplateObject {
	readonly typeName = 'fs.FileInfo';
	readonly #name: string;
	readonly #isDirectory: boolean;
	readonly #size: bigint;
	readonly #modified: number;

	constructor(name: string, isDirectory: boolean, size: bigint, modified: number) {
		this.#name = name;
		this.#isDirectory = isDirectory;
		this.#size = size;
		this.#modified = modified;
	}

	member(name: string): Value | undefined {
		switch (name) {
			case 'Name':
				return method(name, '', () => this.#name);
			case 'Size':
				return method(name, '', () => this.#size);
			case 'IsDir':
				return method(name, '', () => this.#isDirectory);
			case 'ModTime':
				return method(name, '', () => new TimeValue(this.#modified, 'Local'));
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
	readonly #run: Run;
	readonly #meta: Dictionary;
	readonly #body: string;

	constructor(run: Run, meta: Dictionary, body: string) {
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

/** Converts what an execution threw to the error for the site's error routes. */
export function asPageError(error: unknown): unknown {
	if (error instanceof TemplateFailure) return new HttpError(500, error.message, { cause: error });
	return error;
}
