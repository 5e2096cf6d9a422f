; Three reviewers at the same time; an author revises until all of them approve.
;
;   raymond run workflows/three-reviewers --input "Write a function that reads a duration"

(workflow three-reviewers
  (metadata (label "Three reviewers") (max-iterations 5))
  (roles (author) (reviewer :each (safety speed style) :model "haiku"))
  (state draft
    (action (send-prompt :agent author :template "~a" :args (@context/input) :request-id draft)
            (await (transcript-response :request-id draft))))
  (state review
    (for-each topic in reviewer
      (send-prompt :agent @topic :args (@topic (feedback author)) :expect (APPROVE REVISE) :request-id look
        :template "Review this for ~a. Say what is wrong, and end with APPROVE or REVISE.\n\n~a")
      (await (transcript-response :request-id look)))
    (branch (on (verdict look APPROVE) (terminal :result (feedback author))))
    (action (send-prompt :agent author :template "Revise it.\n\n~a" :args ((response look)) :request-id again)
            (await (transcript-response :request-id again)))
    (goto review)))
