; Two writers answer at the same time without knowing of each other, and a judge chooses. If one of them
; fails, the other's answer is taken.
;
;   raymond run workflows/best-of-two --input "Name a command that lists stale branches"

(workflow best-of-two
  (metadata
    (label "Best of two")
    (description "Two answers at the same time, and a judge."))

  (roles
    (bold :agent-kind "claude-code")
    (careful :agent-kind "claude-code")
    (judge :agent-kind "claude-code" :model "haiku"))

  (state answer
    (action
      (send-prompt
        :agent bold
        :template "Give the boldest answer that still works.\n\n~a"
        :args (@context/input)
        :request-id bold-answer)
      (send-prompt
        :agent careful
        :template "Give the most careful answer.\n\n~a"
        :args (@context/input)
        :request-id careful-answer)
      (await
        (and
          (transcript-response :request-id bold-answer :on-error only-careful)
          (transcript-response :request-id careful-answer :on-error take-bold)))))

  (state decide
    (action
      (send-prompt
        :agent judge
        :template "Asked:\n\n~a\n\nAnswer A:\n\n~a\n\nAnswer B:\n\n~a\n\nWhich one is better? Reply with its letter in the first line and why in the second."
        :args (@context/input (response bold-answer) (response careful-answer))
        :request-id verdict)
      (await (transcript-response :request-id verdict)))
    (branch
      (on (matches (response verdict) "\\A\\W*(Answer )?B\\b") (goto take-careful))
      (otherwise (goto take-bold))))

  (state only-careful
    (await (transcript-response :request-id careful-answer))
    (goto take-careful))

  (state take-bold
    (terminal :result (response bold-answer)))

  (state take-careful
    (terminal :result (response careful-answer))))
