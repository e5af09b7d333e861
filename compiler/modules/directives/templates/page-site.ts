/** The part of a `templates` step that all its pages share, including a bounded cache of compiled templates. */

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

/** The functions of pages. The built-in `slice` takes precedence over that of sprig, because it also accepts strings. */
const FUNCTIONS: FunctionTable = new Map(
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
	readonly root: (x: Exchange) => string;
	readonly clientIp: (x: Exchange) => string;
	readonly work: PageWork | undefined;
	readonly patterns = new PatternCache();
	readonly formats = new PageFormats();
	readonly functions: FunctionTable = FUNCTIONS;
	/** The handler of the whole site, for requests made by a page. */
	readonly wholeSite: Handler;
	readonly #cx: CompileContext;
	readonly #language: TemplateLanguage;
	/** Compiled templates by source, least recently used first. */
	readonly #compiled = new Map<string, TextTemplate>();
	#compiledCharacters = 0;
	readonly #placeholders = new Map<string, Template>();

	constructor(step: RenderStep, cx: CompileContext) {
		const [openDelimiter, closeDelimiter] = step.delimiters ?? [];
		this.reader = cx.lease('files', {});
		this.root = compileRoot(step.root, cx);
		this.clientIp = cx.clientIp;
		this.work = cx.pageWork;
		this.wholeSite = cx.wholeSite;
		this.#cx = cx;
		this.#language = {
			delimiters:
				openDelimiter !== undefined && closeDelimiter !== undefined
					? { open: openDelimiter, close: closeDelimiter }
					: DEFAULT_DELIMITERS,
			functions: FUNCTIONS,
			refusedFunctions: REFUSED_SPRIG,
		};
	}

	/** Compiles a template, using the cache. Throws TemplateFailure. */
	compile(source: TemplateSource, name: string): TextTemplate {
		const { text } = source;
		if ((source.data && source.data.length > 0) || text.length > MAX_CACHED_TEMPLATE_CHARACTERS) {
			return compileTextTemplate(source, this.#language, name);
		}
		const cached = this.#compiled.get(text);
		if (cached) {
			this.#compiled.delete(text);
			this.#compiled.set(text, cached);
			return cached;
		}
		const compiledTemplate = compileTextTemplate(source, this.#language, name);
		this.#compiled.set(text, compiledTemplate);
		this.#compiledCharacters += text.length;
		for (const [oldestText] of this.#compiled) {
			if (this.#compiledCharacters <= MAX_CACHED_CHARACTERS) break;
			this.#compiled.delete(oldestText);
			this.#compiledCharacters -= oldestText.length;
		}
		return compiledTemplate;
	}

	/** Returns the placeholder with a name; undefined for invalid names, and for `file.*`, because pages use `readFile`. */
	placeholder(name: string): Template | undefined {
		if (name === '' || name.startsWith('file.') || /[{}\\]/.test(name)) return undefined;
		const cached = this.#placeholders.get(name);
		if (cached) return cached;
		// Pages use the compatible dialect's names, whatever the configuration's dialect.
		const template = this.#cx.template(`{${compatiblePlaceholderName(name)}}`, 'empty');
		if (this.#placeholders.size >= MAX_CACHED_PLACEHOLDERS) this.#placeholders.clear();
		this.#placeholders.set(name, template);
		return template;
	}
}
