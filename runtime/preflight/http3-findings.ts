/** Preflight check of HTTP/3: whether this machine can serve it where the document enables it. */
import { http3Pointers } from '../../compiler/codegen/plan/http3-pointers.ts';
import type { Document } from '../../compiler/document/document.ts';
import { chooseIoMode } from '../sockets/io-mode.ts';
import { findQuicLibrary } from '../sockets/quic/quic-library.ts';
import type { PreflightFinding } from './finding.ts';

/** Returns why a start would reject `h3`, or nothing if it would accept it. */
export function http3Findings(document: Document): PreflightFinding[] {
	const io = chooseIoMode(document.settings?.io);
	const unavailableReason = io === 'direct' ? findQuicLibrary().missing : 'it needs `direct` I/O';
	if (unavailableReason === undefined) return [];
	return http3Pointers(document).map(pointer => ({
		code: 'servers/http3-unavailable',
		severity: 'error',
		pointer,
		message: `HTTP/3 (\`h3\`) is unavailable here: ${unavailableReason}.`,
		hint: 'Leave `h3` out: h1 and h2 are served over TLS.',
	}));
}
