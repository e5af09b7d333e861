/** The state of a `templates` step that all its pages share, including a bounded cache of compiled templates. */

import { compileRoot } from '../../../codegen/context/file-root.ts';
import { compatiblePlaceholderName } from '../../../codegen/placeholders/shorthands.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { FileReader } from '../../../exchange/leases.ts';
import type { PageWork } from '../../../exchange/page-work.ts';
import type { CompileContext, Template } from '../../contract/compile-context.ts';
import { BUILTINS } from '../../templates/builtins.ts';
import type { FunctionTable } from '../../templates/function.ts';
import type { TemplateSource } from '../../templates/lexer.ts';
import { PatternCache } from '../../templates/pattern-cache.ts';
import { REFUSED_SPRIG, SPRIG_FUNCTIONS } from '../../templates/sprig/index.ts';
import {
	compileTextTemplate,
	DEFAULT_DELIMITERS,
	type TemplateLanguage,
	type TextTemplate,
} from '../../templates/text-template.ts';
import { PageFormats } from './page-formats.ts';
import { PAGE_FUNCTIONS } from './page-functions.ts';
import { SECRET_FUNCTIONS } from './page-secrets.ts';
import type { RenderStep } from './templates.ts';

/**
 * The functions that pages can call, by name. The built-in `slice` takes precedence over the `slice` of sprig, because it also
 * accepts strings.
 */
const FUNCTIONS_BY_NAME: FunctionTable = new Map(
	Object.entries({ ...SPRIG_FUNCTIONS, ...SECRET_FUNCTIONS, ...BUILTINS, ...PAGE_FUNCTIONS }),
);

/** Maximum number of characters of all cached templates. */
const MAX_CACHED_CHARACTERS = 8 * 1024 * 1024;
/** Maximum number of characters of a single cached template. */
const MAX_CACHED_TEMPLATE_CHARACTERS = 1024 * 1024;
/** Maximum number of placeholders cached by name. */
const MAX_CACHED_PLACEHOLDERS = 200;

/** The state of a `templates` step that all its pages share. */
export class TemplatesStepState {
	readonly reader: FileReader;
	readonly rootOf: (x: Exchange) => string;
	readonly clientIp: (x: Exchange) => string;
	readonly pageWork: PageWork | undefined;
	readonly patternCache = new PatternCache();
	readonly formats = new PageFormats();
	readonly functions: FunctionTable = FUNCTIONS_BY_NAME;
	/** The handler of the whole site, for requests made by a page. */
	readonly wholeSite: Handler;
	readonly #cx: CompileContext;
	readonly #language: TemplateLanguage;
	/** Compiled templates by source, least recently used first. */
	readonly #templatesBySource = new Map<string, TextTemplate>();
	#cachedCharacters = 0;
	readonly #templatesByPlaceholder = new Map<string, Template>();

	constructor(step: RenderStep, cx: CompileContext) {
		const [openDelimiter, closeDelimiter] = step.delimiters ?? [];
		this.reader = cx.lease('files', {});
		this.rootOf = compileRoot(step.root, cx);
		this.clientIp = cx.clientIp;
		this.pageWork = cx.pageWork;
		this.wholeSite = cx.wholeSite;
		this.#cx = cx;
		this.#language = {
			delimiters:
				openDelimiter !== undefined && closeDelimiter !== undefined
					? { open: openDelimiter, close: closeDelimiter }
					: DEFAULT_DELIMITERS,
			functions: FUNCTIONS_BY_NAME,
			refusedFunctions: REFUSED_SPRIG,
		};
	}

	/** Compiles a template, using the cache. Throws TemplateFailure. */
	compile(source: TemplateSource, name: string): TextTemplate {
		const { text } = source;
		if ((source.data && source.data.length > 0) || text.length > MAX_CACHED_TEMPLATE_CHARACTERS) {
			return compileTextTemplate(source, this.#language, name);
		}
		const cachedTemplate = this.#templatesBySource.get(text);
		if (cachedTemplate) {
			this.#templatesBySource.delete(text);
			this.#templatesBySource.set(text, cachedTemplate);
			return cachedTemplate;
		}
		const compiledTemplate = compileTextTemplate(source, this.#language, name);
		this.#templatesBySource.set(text, compiledTemplate);
		this.#cachedCharacters += text.length;
		for (const [oldestText] of this.#templatesBySource) {
			if (this.#cachedCharacters <= MAX_CACHED_CHARACTERS) break;
			this.#templatesBySource.delete(oldestText);
			this.#cachedCharacters -= oldestText.length;
		}
		return compiledTemplate;
	}

	/** Returns the placeholder with a name; undefined for invalid names, and for `file.*`, because pages use `readFile`. */
	placeholder(name: string): Template | undefined {
		if (name === '' || name.startsWith('file.') || /[{}\\]/.test(name)) return undefined;
		const cachedTemplate = this.#templatesByPlaceholder.get(name);
		if (cachedTemplate) return cachedTemplate;
		// Pages use the placeholder names of a Compatfile, whatever the dialect of the configuration.
		const template = this.#cx.template(`{${compatiblePlaceholderName(name)}}`, 'empty');
		if (this.#templatesByPlaceholder.size >= MAX_CACHED_PLACEHOLDERS) this.#templatesByPlaceholder.clear();
		this.#templatesByPlaceholder.set(name, template);
		return template;
	}
}
