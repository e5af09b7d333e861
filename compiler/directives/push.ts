/** `push`: tells the client which resources it will need, before the response is made. */

import type { CompileContext } from '../codegen/compile-context.ts';
import { compileFieldValue } from '../codegen/field-template.ts';
import type { Step } from '../document/document.ts';
import type { Handler } from '../exchange/handler.ts';
import { HeaderList } from '../exchange/header-list.ts';
import { escapePathWhereNeeded } from '../exchange/uri-escape.ts';
import type { LowerContext } from '../lower/lower-context.ts';
import type { Line, Word } from '../syntax/ast.ts';
import { handlerDirective } from './directive.ts';

interface HintResourcesStep extends Step {
	readonly handler: 'hint_resources';
	readonly resources: readonly string[];
}

const USAGE = 'push [matcher] [<resource>] [{ [GET | HEAD] <resource>…; headers { … } }]';
const EARLY_HINTS = 103;

/** What a browser loads a resource as, by its extension; others it loads when it finds them. */
const KINDS: { readonly [extension: string]: string } = {
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

/** `push [matcher] [<resource>] [{ … }]`. */
export const push = handlerDirective<HintResourcesStep>({
	kind: 'handler',
	id: 'hint_resources',
	names: { configfile: ['push'], compatfile: ['push'] },
	usage: USAGE,
	summary: 'Sends Early Hints (103) that name resources the client will need.',
	documentation: [
		'Browsers have given up server push; they load what a response of status 103 names with `Link: <…>; rel=preload`',
		'while the real response is still being made, and that is what is sent here. Clients of HTTP/1.0 are sent nothing,',
		'nor are requests other than GET and HEAD. The fields of `headers` and resources of `HEAD` belong to server push: they',
		'are accepted and have no effect. Without a resource nothing is sent.',
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
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 1, USAGE);
		const resources: string[] = args[0] ? [cx.template(args[0])] : [];
		for (const inner of line.block?.lines ?? []) resources.push(...lowerLine(inner, cx));
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

function lowerLine(line: Line, cx: LowerContext): string[] {
	const [first, second] = line.words as readonly [Word, Word | undefined];
	if (first.text === 'headers' && !second) {
		cx.problem('warning', 'push/no-effect', first.span, '`headers` has no effect: Early Hints name resources only.');
		return [];
	}
	cx.noBlock(line);
	const withMethod = first.text === 'GET' || first.text === 'HEAD';
	if (!cx.count(line, line.words.slice(1), withMethod ? 1 : 0, withMethod ? 1 : 0, '[GET | HEAD] <resource>'))
		return [];
	if (first.text === 'HEAD') {
		cx.problem(
			'warning',
			'push/no-effect',
			first.span,
			'A resource of `HEAD` has no effect: it cannot be loaded ahead.',
		);
		return [];
	}
	return [cx.template(withMethod ? second! : first)];
}

function compileHints(step: HintResourcesStep, cx: CompileContext, next: Handler): Handler {
	if (step.resources.length === 0) return next;
	const targets = step.resources.map(resource => compileFieldValue(resource, cx, 'empty'));
	const constant = targets.every(target => target.constant !== undefined)
		? hints(targets.map(target => target.constant!))
		: undefined;
	return x => {
		const { method } = x.received;
		if (method === 'GET' || method === 'HEAD') {
			x.inform(EARLY_HINTS, constant ?? hints(targets.map(target => target.render(x))));
		}
		return next(x);
	};
}

function hints(targets: readonly string[]): HeaderList {
	const headers = new HeaderList();
	for (const target of targets) if (target !== '') headers.add('Link', link(target));
	return headers;
}

/** A target cannot leave its brackets, whatever a placeholder holds. */
function link(target: string): string {
	const mark = target.search(/[?#]/);
	const path = mark === -1 ? target : target.slice(0, mark);
	const rest = mark === -1 ? '' : target.slice(mark).replace(/[<>"\s]/g, character => encodeURIComponent(character));
	const kind = KINDS[/\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? ''];
	// Fonts and fetches are loaded in CORS mode: without it the browser would load them twice.
	const cors = kind === 'font' || kind === 'fetch' ? '; crossorigin' : '';
	return `<${escapePathWhereNeeded(path)}${rest}>; rel=preload${kind === undefined ? '' : `; as=${kind}`}${cors}`;
}
