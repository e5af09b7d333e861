/** Errors of an ACME server (RFC 8555 §6.7). */

/** The refusal of a request, which is reported to the client as a problem document. */
export class AcmeRefusal extends Error {
	/** The error's type without the namespace prefix, such as `malformed` or `badNonce`. */
	readonly type: string;
	readonly status: number;

	constructor(type: string, status: number, detail: string) {
		super(detail);
		this.name = 'AcmeRefusal';
		this.type = type;
		this.status = status;
	}

	/** The problem document to send to the client. */
	get document(): { readonly type: string; readonly detail: string; readonly status: number } {
		return { type: `urn:ietf:params:acme:error:${this.type}`, detail: this.message, status: this.status };
	}
}
