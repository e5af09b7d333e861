/** Records from which spans of text the objects of a document were lowered. */
import type { SourceSpan } from '../source/source.ts';

interface Origin {
	readonly span: SourceSpan;
	fields: { readonly [field: string]: SourceSpan | undefined } | undefined;
}

/** Records spans by object during lowering, and finds the nearest one for a JSON pointer afterwards. */
export class Origins {
	readonly #origins = new Map<object, Origin>();

	/** Records the span of an object and of its fields. A later call adds fields but keeps the span. */
	remember(value: object, span: SourceSpan, fields?: { readonly [field: string]: SourceSpan | undefined }): void {
		const known = this.#origins.get(value);
		if (known) known.fields = { ...known.fields, ...fields };
		else this.#origins.set(value, { span, fields });
	}

	/** Transfers the recorded spans of an object to the object that replaces it. */
	move(from: object, to: object): void {
		const origin = this.#origins.get(from);
		if (origin) this.#origins.set(to, origin);
	}

	/** Reports whether a span has been recorded for an object. */
	has(value: object): boolean {
		return this.#origins.has(value);
	}

	/** Returns the span of the innermost recorded object or field on the path of a pointer (RFC 6901) into `document`. */
	locate(document: unknown, pointer: string): SourceSpan | undefined {
		let value = document;
		let found = this.spanOf(value);
		if (pointer === '') return found;
		for (const escaped of pointer.slice(1).split('/')) {
			if (typeof value !== 'object' || value === null) break;
			const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
			found = this.#origins.get(value)?.fields?.[key] ?? found;
			value = (value as { [key: string]: unknown })[key];
			found = this.spanOf(value) ?? found;
		}
		return found;
	}

	/** Returns the span recorded for an object itself. */
	spanOf(value: unknown): SourceSpan | undefined {
		return typeof value === 'object' && value !== null ? this.#origins.get(value)?.span : undefined;
	}
}

/** Records nothing. Used as long as no places are needed. */
export class NoOrigins extends Origins {
	override remember(): void {}
	override move(): void {}
	override has(): boolean {
		return true;
	}
}
