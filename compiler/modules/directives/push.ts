/** `push`: tells the client which resources it will need, before the response is ready. */

import { compileFieldValue } from '../../codegen/placeholders/field-template.ts';
import type { Step } from '../../document/document.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Handler } from '../../exchange/handler.ts';
import { HeaderList } from '../../exchange/header-list.ts';
import { escapePathWhereNeeded } from '../../exchange/uri-escape.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';

interface HintResourcesStep extends Step {
	readonly handler: 'hint_resources';
	readonly resources: readonly string[];
}

const USAGE = 'push [matcher] [<resource>] [{ [GET | HEAD] <resource>…; headers { … } }]';
const EARLY_HINTS_STATUS = 103;

/** Request destinations by the extension of the resource. A destination is the value of `as` in a preload link. */
const DESTINATION_BY_EXTENSION: { readonly [extension: string]: string } = {
	...{ css: 'style', js: 'script', mjs: 'script' },
	...{ woff: 'font', woff2: 'font', ttf: 'font', otf: 'font' },
	...{
		avif: 'image',
		gif: 'image',
		ico: 'image',
		jpg: 'image',
		jpeg: 'image',
		png: 'image',
		svg: 'image',
		webp: 'image',
	},
	...{ json: 'fetch', wasm: 'fetch' },
};

/** Syntax: `push [matcher] [<resource>] [{ … }]`. */
export const push = handlerDirective<HintResourcesStep>({
	kind: 'handler',
	id: 'hint_resources',
	names: { configfile: ['push'], compatfile: ['push'] },
	usage: USAGE,
	summary: 'Sends Early Hints (103) for resources that the client will need.',
	documentation: [
		'Browsers have dropped server push. Instead, they preload what a 103 response names with `Link: <…>; rel=preload`',
		'while the real response is still being prepared, and that is what this sends. HTTP/1.0 clients and',
		'requests other than GET and HEAD get no hints. The fields of `headers` and resources with `HEAD` only concern server push: they',
		'are accepted and have no effect.',
		'',
		'`Link` fields of responses are hints too if they have `rel=preload` or `rel=modulepreload`, name a resource of this',
		'server and do not say `nopush`. They are remembered by host and path and sent immediately to later clients, unless',
		'the response is for one visitor only (`Cache-Control: private` or `no-store`, `Set-Cookie`, a request with',
		'`Authorization`) or is not successful.',
		'',
		'```',
		'push / /app.css',
		'push /shop/* {',
		'	/shop.css',
		'	GET /shop.js',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 230 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 1, USAGE);
		const resources: string[] = args[0] ? [cx.template(args[0])] : [];
		for (const innerLine of line.block?.lines ?? []) resources.push(...lowerResourceLine(innerLine, cx));
		return cx.origin<HintResourcesStep>({ handler: 'hint_resources', resources }, line.span);
	},
	schema: {
		properties: {
			resources: {
				type: 'array',
				items: { type: 'string', minLength: 1 },
				description: 'Paths or URLs, with placeholders.',
			},
		},
		required: ['resources'],
	},
	compile: compileHints,
});

function lowerResourceLine(line: Line, cx: LowerContext): string[] {
	const [firstWord, secondWord] = line.words as readonly [Word, Word | undefined];
	if (firstWord.text === 'headers' && !secondWord) {
		cx.problem(
			'warning',
			'push/no-effect',
			firstWord.span,
			'`headers` has no effect: Early Hints name only resources.',
		);
		return [];
	}
	cx.noBlock(line);
	const hasMethod = firstWord.text === 'GET' || firstWord.text === 'HEAD';
	if (!cx.count(line, line.words.slice(1), hasMethod ? 1 : 0, hasMethod ? 1 : 0, '[GET | HEAD] <resource>')) return [];
	if (firstWord.text === 'HEAD') {
		cx.problem('warning', 'push/no-effect', firstWord.span, 'A `HEAD` resource has no effect: it cannot be preloaded.');
		return [];
	}
	return [cx.template(hasMethod ? secondWord! : firstWord)];
}

function compileHints(step: HintResourcesStep, cx: CompileContext, next: Handler): Handler {
	const templates = step.resources.map(resource => compileFieldValue(resource, cx, 'empty'));
	const constantHints = templates.every(template => template.constant !== undefined)
		? toHintHeaders(templates.map(template => template.constant!))
		: undefined;
	const hintMemory = new HintMemory();
	return x => {
		const { method } = x.received;
		if (method !== 'GET' && method !== 'HEAD') return next(x);
		const configuredHints = constantHints ?? toHintHeaders(templates.map(template => template.render(x)));
		const pageKey = `${x.request.host}${x.received.path}`;
		const rememberedLinks = hintMemory.recall(pageKey);
		const sentHints = rememberedLinks.length === 0 ? configuredHints : configuredHints.clone();
		for (const value of rememberedLinks) if (!sentHints.getAll('link').includes(value)) sentHints.add('Link', value);
		if (sentHints.size > 0) x.sendInterim(EARLY_HINTS_STATUS, sentHints);
		const sendAndRememberHints = (): void => {
			const { status } = x.response;
			if (status < 200 || status > 299) return;
			const links = hintsOfResponse(x);
			if (mayShareHints(x)) hintMemory.remember(pageKey, links);
			// Hints that were not known before the request, as for the first client of a page, are sent just before the response.
			const newHints = new HeaderList();
			for (const value of links) if (!sentHints.getAll('link').includes(value)) newHints.add('Link', value);
			if (newHints.size > 0) x.sendInterim(EARLY_HINTS_STATUS, newHints);
		};
		const pending = next(x);
		return pending instanceof Promise ? pending.then(sendAndRememberHints) : sendAndRememberHints();
	};
}

/** Maximum number of `Link` values remembered per page. */
const MAX_LINKS_PER_PAGE = 20;
/** Maximum number of characters of all remembered pages and their values on one thread. */
const MAX_REMEMBERED_CHARACTERS = 256 * 1024;

/** Remembers the `Link` values of recently answered pages, up to {@link MAX_REMEMBERED_CHARACTERS}. */
class HintMemory {
	/** `Link` values by page, in the order in which the pages were remembered. */
	readonly #linksByPage = new Map<string, readonly string[]>();
	#rememberedCharacters = 0;

	recall(page: string): readonly string[] {
		return this.#linksByPage.get(page) ?? [];
	}

	remember(page: string, links: readonly string[]): void {
		const oldLinks = this.#linksByPage.get(page);
		if (oldLinks) {
			this.#linksByPage.delete(page);
			this.#rememberedCharacters -= countCharacters(page, oldLinks);
		}
		if (links.length === 0) return;
		this.#linksByPage.set(page, links);
		this.#rememberedCharacters += countCharacters(page, links);
		for (const [oldestPage, oldestLinks] of this.#linksByPage) {
			if (this.#rememberedCharacters <= MAX_REMEMBERED_CHARACTERS) break;
			this.#linksByPage.delete(oldestPage);
			this.#rememberedCharacters -= countCharacters(oldestPage, oldestLinks);
		}
	}
}

function countCharacters(page: string, links: readonly string[]): number {
	return links.reduce((sum, link) => sum + link.length, page.length);
}

/**
 * Reports whether a response's hints may be sent to other visitors. The hints of a response meant for one visitor may be useless or
 * secret for others.
 */
function mayShareHints(x: Exchange): boolean {
	const { request, response } = x;
	if (request.headers.has('authorization') || response.headers.has('set-cookie')) return false;
	return !/\b(?:private|no-store)\b/i.test(response.headers.getCombined('cache-control') ?? '');
}

/** Matches one value of a `Link` field: its target and its parameters (RFC 8288 §3). */
const LINK_VALUE_PATTERN = /<([^<>\s]*)>((?:\s*;\s*[^\s;,="<>]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]+))?)*)\s*(?:,|$)/y;

/** Returns the values of the response's `Link` fields that are hints, each as a separate string. */
function hintsOfResponse(x: Exchange): string[] {
	const links: string[] = [];
	for (const field of x.response.headers.getAll('link')) {
		LINK_VALUE_PATTERN.lastIndex = 0;
		for (let linkMatch = LINK_VALUE_PATTERN.exec(field); linkMatch; linkMatch = LINK_VALUE_PATTERN.exec(field)) {
			const [, target, parameters] = linkMatch as unknown as [string, string, string];
			if (links.length < MAX_LINKS_PER_PAGE && isHint(target, parameters)) links.push(`<${target}>${parameters}`);
			while (field[LINK_VALUE_PATTERN.lastIndex] === ' ') LINK_VALUE_PATTERN.lastIndex++;
		}
	}
	return links;
}

function isHint(target: string, parameters: string): boolean {
	// The target must be a path on this server. `//other.example/x` is a URL of another server.
	if (!/^\/(?![/\\])/.test(target) || /;\s*nopush\b/i.test(parameters)) return false;
	const relationMatch = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters);
	return /(?:^|\s)(?:module)?preload(?:\s|$)/i.test(relationMatch?.[1] ?? relationMatch?.[2] ?? '');
}

function toHintHeaders(targets: readonly string[]): HeaderList {
	const headers = new HeaderList();
	for (const target of targets) if (target !== '') headers.add('Link', formatLink(target));
	return headers;
}

/** Returns a `Link` value. The target is escaped, so that it stays inside its angle brackets whatever a placeholder contains. */
function formatLink(target: string): string {
	const suffixStart = target.search(/[?#]/);
	const path = suffixStart === -1 ? target : target.slice(0, suffixStart);
	const queryAndFragment =
		suffixStart === -1 ? '' : target.slice(suffixStart).replace(/[<>"\s]/g, character => encodeURIComponent(character));
	const destination = DESTINATION_BY_EXTENSION[/\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? ''];
	// Browsers load fonts and fetches in CORS mode; without `crossorigin`, they would load the resource twice.
	const corsAttribute = destination === 'font' || destination === 'fetch' ? '; crossorigin' : '';
	return `<${escapePathWhereNeeded(path)}${queryAndFragment}>; rel=preload${destination === undefined ? '' : `; as=${destination}`}${corsAttribute}`;
}
