;;; svc-mode.el --- Configurations of the web server svc  -*- lexical-binding: t -*-

;; Package-Requires: ((emacs "27.1") (eglot "1.8"))

;;; Commentary:
;; Coloring of Configfiles and Caddyfiles, and svc's language server by eglot:
;; diagnostics, completion, fixes, jumps, renaming and formatting.

;;; Code:

(require 'conf-mode)
(require 'svc-words)

(declare-function eglot-ensure "eglot")
(declare-function eglot--current-server-or-lose "eglot")
(declare-function jsonrpc-request "jsonrpc")
(defvar eglot-server-programs)

(defgroup svc nil "Configurations of the web server svc." :group 'languages)

(defcustom svc-program "svc"
  "The svc binary."
  :type 'string)

(defcustom svc-language-server t
  "Whether to start svc's language server for configurations."
  :type 'boolean)

(defun svc--first-word (words)
  "Return a regular expression for one of WORDS at the start of a line."
  (concat "^[ \t]*\\(" (regexp-opt words) "\\)\\(?:[ \t]\\|$\\)"))

(defun svc--keywords (words)
  "Return the font-lock keywords for WORDS, a list of the derived file."
  (let ((matchers (concat "[ \t]\\(" (regexp-opt (cdr (assq 'matchers words))) "\\)\\_>"))
        (operators (concat "[ \t]\\(" (regexp-opt (cdr (assq 'operators words))) "\\)\\_>")))
    `(("\\(?:^\\|[ \t]\\)\\(#.*\\)$" 1 font-lock-comment-face t)
      (,(svc--first-word (cons "expect" (cdr (assq 'keywords words)))) 1 font-lock-keyword-face)
      ("}[ \t]+\\(else\\(?:[ \t]+when\\)?\\)\\_>" 1 font-lock-keyword-face)
      (,(svc--first-word (cdr (assq 'directives words))) 1 font-lock-function-name-face)
      (,(svc--first-word (cdr (assq 'options words))) 1 font-lock-type-face)
      ("^&?(\\([^() \t]+\\))" 1 font-lock-constant-face)
      ("^[ \t]*\\(?:use\\|import\\|invoke\\)[ \t]+\\([[:alnum:]_-]+\\)\\(?:[ \t]\\|$\\)" 1 font-lock-constant-face)
      ("^[ \t]*\\(?:@\\|when[ \t]\\|} else when[ \t]\\)"
       (,matchers (line-end-position) (beginning-of-line) (1 font-lock-builtin-face))
       (,operators (line-end-position) (beginning-of-line) (1 font-lock-keyword-face)))
      ("\\(?:^\\|[ \t]\\)\\(@[^ \t\n{}]+\\)" 1 font-lock-variable-name-face)
      ("{[^{} \t\n]+}" 0 font-lock-variable-name-face t)
      ("^\\([^ \t\n#{}@(&][^#\n]*?\\)[ \t]*{[ \t]*$" 1 font-lock-type-face keep))))

(defvar svc-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?` "\"" table)
    (modify-syntax-entry ?_ "_" table)
    (modify-syntax-entry ?- "_" table)
    (modify-syntax-entry ?' "." table)
    ;; A # inside a word is text, so comments are left to font-lock.
    (modify-syntax-entry ?# "." table)
    table))

(defun svc-indent-line ()
  "Indent the current line by one tab for each open block."
  (interactive)
  (let* ((closes (save-excursion (back-to-indentation) (looking-at-p "}")))
         (depth (car (syntax-ppss (line-beginning-position))))
         (wanted (* tab-width (max 0 (- depth (if closes 1 0))))))
    (if (<= (current-column) (current-indentation))
        (indent-line-to wanted)
      (save-excursion (indent-line-to wanted)))))

;;;###autoload
(define-derived-mode svc-mode prog-mode "svc"
  "Major mode for Configfiles and Caddyfiles."
  (let ((caddyfile (and buffer-file-name
                        (string-match-p "\\(?:Caddyfile\\|Compatfile\\|\\.\\(?:caddy\\|compat\\)file\\)\\'" buffer-file-name))))
    (setq font-lock-defaults (list (svc--keywords (if caddyfile svc-words-compatfile svc-words-configfile)))))
  (setq-local comment-start "# " comment-start-skip "#+[ \t]*" comment-end "")
  (setq-local indent-tabs-mode t tab-width 4 indent-line-function #'svc-indent-line)
  (setq-local compile-command (concat svc-program " validate --lint --format unix"))
  (when svc-language-server
    (if (executable-find svc-program)
        (eglot-ensure)
      (message "%s is not a program. Install svc, or set svc-program to the path of its binary." svc-program))))

;;;###autoload
(add-to-list 'auto-mode-alist
             '("\\(?:\\`\\|/\\)\\(?:Configfile\\|Caddyfile\\|Compatfile\\)\\'\\|\\.\\(?:config\\|caddy\\|compat\\)file\\'" . svc-mode))

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(svc-mode . (lambda (&rest _) (list svc-program "language-server")))))

(defun svc-explain-request (request)
  "Show which site, matchers and handlers REQUEST runs through.
It is a URL, after a method if it is not GET."
  (interactive (list (read-string "Request: " "https://example.com/")))
  (let* ((uri (plist-get (eglot--TextDocumentIdentifier) :uri))
         (answer (jsonrpc-request (eglot--current-server-or-lose) :workspace/executeCommand
                                  (list :command "svc.explainRequest" :arguments (vector uri request t)))))
    (with-help-window "*svc request*" (princ (plist-get answer :text)))))

(declare-function eglot--TextDocumentIdentifier "eglot")

(provide 'svc-mode)
;;; svc-mode.el ends here
